"""Every use of every op that the reference is held against torch with: lowered and fused."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler.fusion import schedule
from scheduler.ir.graph import Graph
from scheduler.ir.operations import Extern, size_of_buffer
from scheduler.ir.ops import NoKernel
from scheduler.lowering import lower
from scheduler.lowering.ops import find, named_reasons
from scheduler.reference import run
from tests.unit.lowering.running import run_schedule

pytest.importorskip("torch")

from tests.unit.torch_export import export, inputs_of

# Ops with a kernel, and uses of them that have none: they run through the reference.
WITHOUT = {
    "aten.repeat_interleave.self_Tensor",  # by what another tensor says
    "aten.repeat_interleave.Tensor",
    "higher_order.scan",  # over many slices
}

# Uses of ops: each file of this name beside this folder has a family's.
MODULES = [
    importlib.import_module(f"tests.unit.{path.stem}")
    for path in sorted(Path(__file__).parents[1].glob("test_torch_ops*.py"))
]
CASES = [
    pytest.param(module, name, decompose, id=f"{module.__name__[11:]}-{name}-{decompose}")
    for module in MODULES
    for name, function in vars(module).items()
    if name.startswith("test_") and "tmp_path" in inspect.signature(function).parameters
    for decompose in (
        (False, True) if "decompose" in inspect.signature(function).parameters else (None,)
    )
]


def late(extern: Extern) -> bool:
    """Whether it says how large its own results are: kernels are launched after that."""
    return any(map(size_of_buffer, extern.outputs))


def agree(
    module: Any,
    args: tuple[Any, ...],
    folder: Path,
    *,
    bindings: Mapping[str, int] | None = None,
    decompose: bool = False,
    **options: Any,
) -> Graph:
    """Export, lower and schedule; both schedules give what the reference gives."""
    program, graph = export(module, args, folder, decompose=decompose, **options)
    values = inputs_of(program, graph, args)
    sizes = {**{n: s.hint for n, s in graph.symbols.items()}, **(bindings or {})}
    expected = run(graph, values, sizes)
    lowered = lower(graph)
    externs = {
        op.op: op.reason for op in lowered.operations if isinstance(op, Extern) and not late(op)
    }
    for op in externs.keys() - WITHOUT:
        assert isinstance(find(op).op.lowering, NoKernel) or externs[op] in named_reasons(), op
    for fuse in (False, True):
        got = run_schedule(schedule(lowered, fuse=fuse), values, sizes)
        for name, value in expected.items():
            assert got[name].shape == np.shape(value)
            np.testing.assert_allclose(
                got[name].astype(_wide(value)),
                np.asarray(value, _wide(value)),
                rtol=1e-9,
                atol=1e-9,
            )
    return graph


def _wide(value: Any) -> type:
    return complex if np.iscomplexobj(value) else float


@pytest.mark.parametrize(("module", "name", "decompose"), CASES)
def test_lowered_and_fused(
    module: Any, name: str, decompose: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "agree", agree)
    options = {} if decompose is None else {"decompose": decompose}
    getattr(module, name)(tmp_path, **options)
