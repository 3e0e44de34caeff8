"""Ops without a kernel among kernels: several results, writes in place, arguments through views."""

from __future__ import annotations

import math

import numpy as np
import pytest

from scheduler.build.flags import Flags
from scheduler.errors import UserError
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Graph, GraphInput, InputKind, Node, Ref
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
    tensors = {name: meta(DType.F32, 6, 8) for name in ("x", "twice", "part", "less")}
    tensors |= {"power": meta(DType.I32, 6, 8), "next": meta(DType.I32, 6, 8)}
    nodes = [
        node("twice", "aten.mul.Tensor", Ref("x"), 2.0),
        Node("frexp", "aten.frexp.Tensor", (Ref("twice"),), {}, ("part", "power")),
        node("less", "aten.neg.default", Ref("part")),
        node("next", "aten.add.Tensor", Ref("power"), 1),
    ]
    got = outputs(graph(X, nodes, tensors, ("less", "next")), x=VALUES)
    part, power = np.frexp(2 * VALUES)
    np.testing.assert_array_equal(got["next"], power + 1)
    np.testing.assert_array_equal(got["less"], -part)


def test_a_write_in_place_is_seen_by_what_shares_the_memory() -> None:
    tensors = {name: meta(DType.F32, 6, 8) for name in ("x", "own", "sum")}
    tensors |= {name: meta(DType.F32, 8, 6) for name in ("rows", "put")}
    tensors["one"] = meta(DType.F32, 6)
    nodes = [
        node("own", "aten.clone.default", Ref("x")),
        node("rows", "aten.permute.default", Ref("own"), (1, 0)),
        node("put", "aten.igammac_.default", Ref("rows"), Ref("one")),
        node("sum", "aten.add.Tensor", Ref("own"), Ref("x")),
    ]
    inputs = [GraphInput(name, InputKind.USER) for name in ("x", "one")]
    got = outputs(graph(inputs, nodes, tensors, ("sum",)), x=VALUES, one=np.ones(6))
    # Of an integer a and of 1: the chance of fewer than a events where one is expected.
    terms = [1 / (math.e * math.factorial(k)) for k in range(48)]
    fewer = np.array([sum(terms[: int(a)]) for a in VALUES.flat]).reshape(VALUES.shape)
    np.testing.assert_allclose(got["sum"], fewer + VALUES, rtol=1e-6)


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
