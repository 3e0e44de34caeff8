"""One architecture from torch to kernels, and whether it is right."""

from __future__ import annotations

import copy
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from scheduler import pipeline, reference
from scheduler.build.cache import CodeCache
from scheduler.build.flags import parse_flags
from scheduler.frontends.pt2 import read
from scheduler.fusion.nodes import Schedule
from scheduler.ir.graph import Graph, InputKind
from scheduler.ir.operations import Extern
from scheduler.targets import find
from tests.benchmarks.architectures.models import Architecture
from tests.benchmarks.opinfo.comparing import EXACT, Expected, beside_reference, tolerances
from tests.benchmarks.opinfo.database import as_array, widened
from tests.benchmarks.opinfo.exporting import one_line
from tests.benchmarks.opinfo.judging import Level
from tests.support.models_as_kernels import Prepared, compile_all, run
from tests.unit.lowering.running import run_schedule

# How far the reference, in float64, may lie from torch in float32: of the largest value.
_FLOAT32 = 2e-4


@dataclass(frozen=True)
class Outcome:
    """What became of an architecture: the stage that failed and why, empty where it is right."""

    name: str
    field: str
    nodes: int = 0
    kernels: int = 0
    externs: tuple[str, ...] = ()
    failed: str = ""
    reason: str = ""
    seconds: float = 0.0


class WrongError(Exception):
    """A result is wrong."""


def judge(one: Architecture, level: Level, cache: Path, *, flags: str = "-O1") -> Outcome:
    """Export, read, run by the reference, lower, and as far as ``level`` says."""
    found = Outcome(one.name, one.field)
    stage = "export"
    try:
        torch.manual_seed(0)
        module, args = one.make()
        module.eval()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.pt2"
            program = _exported(module, args, path)
            expected = _expected(module, args)
            stage = "read"
            graph = read(path)
            found = replace(found, nodes=len(graph.nodes))
        values, names = _values(program, graph, args), _results(program, graph)
        stage = "lower"
        plan = pipeline.schedule(pipeline.lower(graph))
        externs = {op.op: op.reason for op in plan.lowered.operations if isinstance(op, Extern)}
        generated = pipeline.generate(plan, [find("cpu")])
        found = replace(found, kernels=len(generated.kernels), externs=tuple(sorted(externs)))
        stage = "reference"
        references = reference.run(graph, values, _bindings(graph))
        _beside_torch(names, references, expected)
        if level >= Level.INTERPRET:
            stage = "interpret"
            got = run_schedule(plan, values, _bindings(graph))
            _beside(plan, names, references, got, expected)
        if level >= Level.KERNELS:
            stage = "kernels"
            prepared = Prepared(graph, generated)
            library = compile_all([prepared], find("cpu"), CodeCache(cache), parse_flags(flags))
            got = run(prepared, library, find("cpu"), values, _bindings(graph))
            _beside(plan, names, references, got, expected)
    except Exception as error:  # whatever is raised is what became of it
        return replace(found, failed=stage, reason=" ".join(one_line(error).split())[:300])
    return found


def _exported(module: Any, args: tuple[Any, ...], path: Path) -> Any:
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(module, args)
        torch.export.save(program, path)
    return program


def _expected(module: Any, args: tuple[Any, ...]) -> list[Expected]:
    """Torch's tensors, in the model's own types, and in float64 where it runs in them."""
    own = _tensors(module, args)
    try:
        wide = _tensors(copy.deepcopy(module).double(), tuple(widened(arg) for arg in args))
    except Exception:  # types are written into the model
        wide = [None] * len(own)
    return [Expected(a, b) for a, b in zip(own, wide, strict=True)]


def _tensors(module: Any, args: tuple[Any, ...]) -> list[Any]:
    with torch.no_grad():
        made = module(*(copy.deepcopy(arg) for arg in args))
    leaves = torch.utils._pytree.tree_leaves(made)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _values(program: Any, graph: Graph, args: tuple[Any, ...]) -> dict[str, Any]:
    given = iter(args)
    stored = {**program.state_dict, **program.constants}
    return {
        value.name: as_array(
            next(given) if value.kind is InputKind.USER else stored[value.source_name]
        )
        for value in graph.inputs
    }


def _bindings(graph: Graph) -> dict[str, int]:
    return {name: info.hint for name, info in graph.symbols.items()}


def _results(program: Any, graph: Graph) -> list[str]:
    """The tensors that the model gives, without those that it writes."""
    names = program.graph_signature.user_outputs
    return [name for name in names if name in graph.tensors]


def _beside_torch(
    names: Sequence[str], got: Mapping[str, Any], expected: Sequence[Expected]
) -> None:
    for name, one in zip(names, expected, strict=True):
        want, have = as_array(one.wide if one.wide is not None else one.own), got[name]
        if have.shape != want.shape:
            raise WrongError(f"{name}: shape {have.shape}, torch {want.shape}")
        largest = float(np.abs(want[np.isfinite(want)]).max(initial=0))
        near = _FLOAT32 * largest if want.dtype.kind in "fc" else 0.0
        wrong = ~np.isclose(have, want, rtol=0, atol=near, equal_nan=True)
        if wrong.any():
            far = np.abs(have[wrong] - want[wrong]).max()
            raise WrongError(f"{name}: off by {far:.3g}, the largest is {largest:.3g}")


def _beside(
    plan: Schedule,
    names: Sequence[str],
    references: Mapping[str, Any],
    got: Mapping[str, Any],
    expected: Sequence[Expected],
) -> None:
    graph = plan.lowered.graph
    bounds = tolerances(plan, _bindings(graph))
    buffers = dict(zip(graph.outputs, plan.lowered.outputs, strict=True))
    for name, one in zip(names, expected, strict=True):
        bound = bounds.get(buffers[name], EXACT)
        wrong = beside_reference(got[name], references[name], one, bound)
        if wrong:
            raise WrongError(f"{name}: {wrong}")
