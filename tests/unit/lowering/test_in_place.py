"""Writes in place: whatever shows the memory sees them, and nothing else does."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.fusion import schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Argument, GraphInput, InputKind, Ref
from scheduler.lowering import lower
from tests.unit.lowering.graphs import graph, meta, node
from tests.unit.lowering.running import run_schedule

X = [GraphInput("x", InputKind.USER)]


@pytest.mark.parametrize(
    ("target", "args", "made"),
    [
        ("aten.repeat.default", ((2, 1),), np.tile(np.arange(3.0)[:, None], (2, 4))),
        ("aten.flip.default", ((0,),), np.repeat(np.arange(3.0)[::-1, None], 4, 1)),
        ("aten.permute.default", ((1, 0),), np.repeat(np.arange(3.0)[None, :], 4, 0)),
    ],
)
def test_a_copy_of_repeated_elements_is_memory_of_its_own(
    target: str, args: tuple[Argument, ...], made: np.ndarray
) -> None:
    """One element of the source stands at several places of the copy; one of them is written."""
    size = made.shape
    tensors = {"x": meta(DType.F32, 3, 4), "row": meta(DType.F32, size[1])}
    tensors |= {name: meta(DType.F32, *size) for name in ("seen", "copy", "last")}
    tensors |= {"wrote": tensors["row"]}
    nodes = [
        node("seen", target, Ref("x"), *args),
        node("copy", "aten.clone.default", Ref("seen")),
        node("row", "aten.select.int", Ref("copy"), 0, 0),
        node("wrote", "aten.add_.Tensor", Ref("row"), 100),
        node("last", "aten.add.Tensor", Ref("copy"), Ref("seen")),
    ]
    plan = schedule(lower(graph(X, nodes, tensors, ("last",))))
    got = run_schedule(plan, {"x": np.repeat(np.arange(3.0)[:, None], 4, 1)}, {})["last"]
    expected = 2 * made
    expected[0] += 100
    np.testing.assert_array_equal(got, expected)
