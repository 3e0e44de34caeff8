"""Ops without a kernel among kernels: several results, writes in place, arguments through views."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.build.flags import Flags
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Graph, GraphInput, InputKind, Node, Ref
from scheduler.outcome import UserError
from scheduler.targets import find
from tests.support.caches import KEPT
from tests.support.models_as_kernels import compile_all, prepare, run
from tests.unit.lowering.graphs import graph, meta, node

X = [GraphInput("x", InputKind.USER)]
VALUES = np.random.default_rng(2).permutation(48).reshape(6, 8).astype(np.float64)


def outputs(given: Graph, **inputs: np.ndarray) -> dict[str, np.ndarray]:
    """The graph's outputs through its kernels and externs."""
    target = find("cpu")
    one = prepare(given, target)
    assert one.generated.externs
    assert all(extern.reason for extern in one.generated.externs)
    library = compile_all([one], target, KEPT, Flags(("-O1",)))
    return run(one, library, target, inputs, {})


def test_several_results_are_each_read_by_kernels() -> None:
    tensors = {"x": meta(DType.F32, 6, 8), "twice": meta(DType.F32, 6, 8)}
    tensors |= {"top": meta(DType.F32, 6, 3), "where": meta(DType.I64, 6, 3)}
    tensors |= {"best": meta(DType.F32, 6, 3), "next": meta(DType.I64, 6, 3)}
    nodes = [
        node("twice", "aten.mul.Tensor", Ref("x"), 2.0),
        Node("topk", "aten.topk.default", (Ref("twice"), 3), {}, ("top", "where")),
        node("best", "aten.neg.default", Ref("top")),
        node("next", "aten.add.Tensor", Ref("where"), 1),
    ]
    got = outputs(graph(X, nodes, tensors, ("best", "next")), x=VALUES)
    order = np.argsort(-VALUES, axis=1)[:, :3]
    np.testing.assert_array_equal(got["next"], order + 1)
    np.testing.assert_array_equal(got["best"], -2 * np.take_along_axis(VALUES, order, 1))


def test_a_write_in_place_is_seen_by_what_shares_the_memory() -> None:
    names = ("x", "own", "rows", "put", "sum")
    tensors = {name: meta(DType.F32, 6, 8) for name in names} | {"i": meta(DType.I64, 2)}
    tensors["rows"] = meta(DType.F32, 8, 6)
    tensors |= {"new": meta(DType.F32, 2, 6), "put": meta(DType.F32, 8, 6)}
    nodes = [
        node("own", "aten.clone.default", Ref("x")),
        node("rows", "aten.permute.default", Ref("own"), (1, 0)),
        node("put", "aten.index_put_.default", Ref("rows"), (Ref("i"),), Ref("new")),
        node("sum", "aten.add.Tensor", Ref("own"), Ref("x")),
    ]
    inputs = [GraphInput(name, InputKind.USER) for name in ("x", "i", "new")]
    new = np.arange(12.0).reshape(2, 6)
    got = outputs(graph(inputs, nodes, tensors, ("sum",)), x=VALUES, i=np.array([5, 1]), new=new)
    expected = VALUES.copy()
    expected[:, [5, 1]] = new.T
    np.testing.assert_array_equal(got["sum"], expected + VALUES)


def test_what_nothing_knows_is_one_clear_line() -> None:
    tensors = {name: meta(DType.F32, 6, 8) for name in "xyz"}
    nodes = [
        node("y", "mylib.frobnicate.default", Ref("x")),
        node("z", "aten.exp.default", Ref("y")),
    ]
    said = (
        r"y \(mylib\.frobnicate\.default, m\.layers\.0, model\.py:7\) cannot be run: .*unknown op"
    )
    with pytest.raises(UserError, match=said):
        outputs(graph(X, nodes, tensors, ("z",)), x=VALUES)
