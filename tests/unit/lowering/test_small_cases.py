"""Cases that random models found: constants beside narrow types, and loops without a step."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.benchmark.case_builder import make_case
from scheduler.fusion import schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import GraphInput, InputKind, Ref
from scheduler.lowering import lower
from tests.unit.lowering.graphs import graph, meta, node
from tests.unit.lowering.running import run_schedule

X = [GraphInput("x", InputKind.USER)]


def test_a_constant_is_multiplied_in_the_type_of_the_other_operand() -> None:
    tensors = {name: meta(DType.F16, 4, 4) for name in ("x", "ones", "y")}
    nodes = [
        node("ones", "aten.ones_like.default", Ref("x")),
        node("y", "aten.mm.default", Ref("ones"), Ref("x")),
    ]
    x = np.arange(16.0).reshape(4, 4)
    got = run_schedule(schedule(lower(graph(X, nodes, tensors, ("y",)))), {"x": x}, {})["y"]
    np.testing.assert_array_equal(got, np.ones((4, 4)) @ x)


@pytest.mark.parametrize("size", [(), (1,)])
def test_a_dot_product_is_one_element(size: tuple[int, ...]) -> None:
    """What its kernel is compared with, too: a store at a place that no loop moves."""
    tensors = {"x": meta(DType.F32, 4), "dot": meta(DType.F32), "y": meta(DType.F32, *size)}
    nodes = [
        node("dot", "aten.dot.default", Ref("x"), Ref("x")),
        node("y", "aten.reshape.default", Ref("dot"), size),
    ]
    plan = schedule(lower(graph(X, nodes, tensors, ("y",))))
    got = run_schedule(plan, {"x": np.arange(4.0)}, {})["y"]
    np.testing.assert_array_equal(got, np.full(size, 14.0))
    case = make_case(plan.nodes[0], plan.lowered, {}, np.random.default_rng(0))
    (expected,) = case.expected.values()
    held = case.inputs["x"].astype(np.float64)
    np.testing.assert_allclose(expected, np.full(expected.shape, held @ held))


def test_loops_over_nothing_are_scheduled() -> None:
    tensors = {"x": meta(DType.F32, 6, 8), "part": meta(DType.F32, 6, 0)}
    tensors |= {"sums": meta(DType.F32, 6), "turned": meta(DType.F32, 0, 6)}
    tensors |= {"tanh": meta(DType.F32, 0, 6), "flat": meta(DType.F32, 0)}
    nodes = [
        node("part", "aten.slice.Tensor", Ref("x"), 1, 8, 8),
        node("sums", "aten.sum.dim_IntList", Ref("part"), (1,)),
        node("turned", "aten.permute.default", Ref("part"), (1, 0)),
        node("tanh", "aten.tanh.default", Ref("turned")),
        node("flat", "aten.reshape.default", Ref("tanh"), (0,)),
    ]
    plan = schedule(lower(graph(X, nodes, tensors, ("sums", "flat"))))
    got = run_schedule(plan, {"x": np.ones((6, 8))}, {})
    np.testing.assert_array_equal(got["sums"], np.zeros(6))
    assert got["flat"].shape == (0,)
