"""Every use of every op that the reference is held against torch with: lowered and fused."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler.fusion import schedule
from scheduler.ir.graph import Graph
from scheduler.ir.operations import Extern
from scheduler.lowering import lower
from scheduler.reference import run
from tests.unit.lowering.running import run_schedule

pytest.importorskip("torch")

from tests.unit import test_torch_ops as uses
from tests.unit.torch_export import export, inputs_of

# What no kernel is made for: it runs through the reference, with its reason.
EXTERNS = {
    "aten._native_batch_norm_legit.no_stats",
    "aten.index_put.default",
    "aten.index_put_.default",
    "aten.scatter.src",
    "aten.scatter.value",
    "aten.scatter_add.default",
    "aten.sort.default",
    "aten.topk.default",
    "aten.upsample_nearest2d.vec",  # by a factor that is not whole
}
SKIPPED = {"test_every_entry_of_the_op_table", "test_what_torch_returns"}

CASES = [
    (name, decompose)
    for name, function in vars(uses).items()
    if name.startswith("test_") and not any(name.startswith(skipped) for skipped in SKIPPED)
    for decompose in (
        (False, True) if "decompose" in inspect.signature(function).parameters else (None,)
    )
]


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
    assert {op.op for op in lowered.operations if isinstance(op, Extern)} <= EXTERNS
    for fuse in (False, True):
        got = run_schedule(schedule(lowered, fuse=fuse), values, sizes)
        for name, value in expected.items():
            assert got[name].shape == np.shape(value)
            np.testing.assert_allclose(
                got[name].astype(float), np.asarray(value, float), rtol=1e-9, atol=1e-9
            )
    return graph


@pytest.mark.parametrize(("name", "decompose"), CASES)
def test_lowered_and_fused(
    name: str, decompose: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uses, "agree", agree)
    options = {} if decompose is None else {"decompose": decompose}
    getattr(uses, name)(tmp_path, **options)
