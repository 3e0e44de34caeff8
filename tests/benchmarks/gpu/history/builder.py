"""Builds the default kernels of samples with the engine of whichever commit's tree it runs in.

    PYTHONPATH=TREE python builder.py '{"samples": [...], "target": "sm_90", "cache": …, "out": …}'

It goes by what all those trees have: nothing of today's engine is imported. For each sample and
language it writes a bundle's manifest, sources and builds to ``out/<sample>-<language>``, and for
all of them ``out/said.json``: why a kernel, or all of them, could not be built. Of a sample only
the kernels are built that compute one of its ``nodes``. A tree that does not know the target yet
renders for the ``older`` one and builds nothing; ``out/target`` names what was rendered for.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import scheduler

if importlib.util.find_spec("scheduler.codegen.wrapper") is None:
    # In the first trees what writes a bundle asks for a wrapper that came some commits later.
    sys.modules["scheduler.codegen.wrapper"] = later = types.ModuleType("wrapper")
    later.__dict__["render_wrapper"] = lambda *_: ""

from scheduler import pipeline
from scheduler.build.flags import parse_flags
from scheduler.build.model import Build
from scheduler.bundle import writer
from scheduler.commands import options
from scheduler.errors import UserError

CUTEDSL = "source.py"


def main(wanted: dict[str, Any]) -> None:
    """Every sample in every language; one that fails takes no other along."""
    said: dict[str, str] = {}
    known = _knows(wanted["target"])
    wanted = wanted | {"target": wanted["target"] if known else wanted["older"], "build": known}
    Path(wanted["out"], "target").write_text(wanted["target"])
    for sample in wanted["samples"]:
        try:
            plan = _plan(sample)
        except Exception as error:  # noqa: BLE001 - one is left out, whatever it is
            said[sample["name"]] = _line(error)
            continue
        for language, choose in _languages(plan, wanted["target"]):
            key = f"{sample['name']}-{language}"
            try:
                said |= _build(plan, choose, wanted, Path(wanted["out"], key), language)
            except Exception as error:  # noqa: BLE001 - one is left out, whatever it is
                said[key] = _line(error)
    Path(wanted["out"], "said.json").write_text(json.dumps(said))


def _knows(target: str) -> bool:
    try:
        return bool(options.parse_targets([target]))
    except UserError:
        return False


def _plan(sample: dict[str, Any]) -> Any:
    graph = pipeline.load(Path(sample["file"]), sample["name"])
    if sample["sizes"]:
        graph = pipeline.with_hints(graph, sample["sizes"])
    plan = pipeline.schedule(pipeline.lower(graph))
    wanted = set(sample["nodes"])
    if not wanted:
        return plan
    return replace(plan, nodes=tuple(one for one in plan.nodes if wanted & set(one.nodes)))


def _languages(plan: Any, target: str) -> list[tuple[str, Callable[[Any], Any] | None]]:
    """HIP C++ by its defaults, and CuteDSL by its own where the tree can build it, whether or not
    it was offered to people then."""
    found: list[tuple[str, Callable[[Any], Any] | None]] = [("hip", None)]
    if not Path(scheduler.__file__).parent.joinpath("build", "cutedsl").is_dir():
        return found
    from scheduler.codegen.cutedsl.scheduling import CuteDSLScheduling

    targets = tuple(options.parse_targets([target]))
    if "cuda" not in {one.backend for one in targets}:
        return found
    one = CuteDSLScheduling(plan, targets)
    return [*found, ("cutedsl", lambda node: _default(one, node))]


def _default(scheduling: Any, node: Any) -> Any:
    """Its default for the node; None where it has no template, or none that serves."""
    if node.kind not in scheduling.templates():
        return None
    template = scheduling.template(node)
    try:
        config = template.default_config()
    except UserError:  # none of them serves
        return None
    return scheduling.default(node) if template.reject(config) is None else None


def _build(
    plan: Any, choose: Callable[[Any], Any] | None, wanted: dict[str, Any], out: Path, language: str
) -> dict[str, str]:
    targets = options.parse_targets([wanted["target"]])
    made = pipeline.generate(plan, targets, choose)
    kernels = [
        one
        for one in made.kernels
        if (getattr(one, "source_file", "") == CUTEDSL) == (language == "cutedsl")
    ]
    if not wanted["build"]:
        writer.write(out, plan, made.manifest(), kernels, {})
        return {}
    given = argparse.Namespace(rocm=None, cache=Path(wanted["cache"]))
    built = pipeline.build_kernels(
        kernels,
        targets,
        options.toolchain_for(given),
        options.code_cache(given),
        flags=parse_flags(wanted["flags"]),
    )
    builds = {key: one for key, one in built.items() if isinstance(one, Build)}
    writer.write(out, plan, made.manifest(), kernels, builds)
    return {
        f"{out.name}/{name}": one.reason
        for (name, _), one in built.items()
        if not isinstance(one, Build)
    }


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
