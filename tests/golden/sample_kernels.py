"""The kernels of the seven samples, by name: a name is its source's digest, so equal names are
equal sources. A change here is a change of what is generated; the commit says why.

``python -m tests.golden.test_sample_kernels`` writes the file anew.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scheduler import pipeline, samples, targets

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "cpu")
FILE = Path(__file__).with_name("sample_kernels.json")


def kernels(name: str) -> dict[str, str]:
    """The default kernel of each scheduler node."""
    plan = pipeline.schedule(pipeline.lower(pipeline.load(samples.path(name))))
    generated = pipeline.generate(plan, [targets.find(one) for one in TARGETS])
    return {node: caller.name for node, caller in generated.chosen.items()}


@pytest.mark.parametrize("name", samples.names())
def test_the_samples_have_the_same_kernels_as_before(name: str) -> None:
    assert kernels(name) == json.loads(FILE.read_text())[name]


if __name__ == "__main__":
    FILE.write_text(json.dumps({name: kernels(name) for name in samples.names()}, indent=1) + "\n")
