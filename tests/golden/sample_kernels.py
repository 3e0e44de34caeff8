"""The kernels of the samples, by name: a name has its source's digest, so equal names are equal
sources."""

from __future__ import annotations

from scheduler import pipeline, samples, targets

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "cpu")


def kernels(name: str) -> dict[str, str]:
    """The default kernel of each scheduler node."""
    plan = pipeline.schedule(pipeline.lower(pipeline.load(samples.path(name))))
    generated = pipeline.generate(plan, [targets.find(one) for one in TARGETS])
    return {node: caller.name for node, caller in generated.chosen.items()}
