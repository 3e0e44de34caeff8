"""Integers divided by 0, the least by -1: kernels give what the reference says, and go on."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.benchmark.case_builder import make_case
from scheduler.build.flags import Flags
from scheduler.fusion import schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import GraphInput, InputKind, Ref
from scheduler.lowering import lower
from scheduler.reference import random_inputs
from scheduler.reference import run as reference
from scheduler.targets import find
from tests.support.caches import KEPT
from tests.support.models_as_kernels import compile_all, prepare, run
from tests.unit.lowering.graphs import graph, meta, node

XY = [GraphInput(name, InputKind.USER) for name in "xy"]
OPS = {
    "floor": "aten.floor_divide.default",
    "remainder": "aten.remainder.Tensor",
    "fmod": "aten.fmod.Tensor",
}


@pytest.mark.parametrize("dtype", [DType.I64, DType.I32, DType.I8, DType.U8])
def test_division_by_zero_is_defined(dtype: DType) -> None:
    low, high = int(np.iinfo(dtype.reference_numpy).min), int(np.iinfo(dtype.reference_numpy).max)

    def wrapped(values: list[int]) -> np.ndarray:
        return np.array([low if value > high else value for value in values], dtype.reference_numpy)

    every = np.array([low, low + 1, 0, 1, 7, high, 5, 6], dtype.reference_numpy)
    signed = -1 if low else 1
    divisors = np.array([0, 1, 3, signed, high, low, 2 * signed, 0], dtype.reference_numpy)
    x, y = (each.ravel() for each in np.meshgrid(every, divisors, indexing="ij"))
    tensors = {name: meta(dtype, 64) for name in ("x", "y", *OPS, "trunc")}
    nodes = [node(name, op, Ref("x"), Ref("y")) for name, op in OPS.items()]
    last = node("trunc", "aten.div.Tensor_mode", Ref("x"), Ref("y"), rounding_mode="trunc")
    given = graph(XY, [*nodes, last], tensors, (*OPS, "trunc"))
    target = find("cpu")
    one = prepare(given, target)
    library = compile_all([one], target, KEPT, Flags(("-O1",)))
    got = run(one, library, target, {"x": x, "y": y}, {})
    expected = reference(given, {"x": x, "y": y}, {})
    for name, value in expected.items():
        np.testing.assert_array_equal(got[name], value, err_msg=name)
    zero = y == 0
    assert (expected["floor"][zero] == (-1 if low else high)).all()
    assert (expected["trunc"][zero] == (-1 if low else high)).all()
    np.testing.assert_array_equal(expected["remainder"][zero], x[zero])
    np.testing.assert_array_equal(expected["fmod"][zero], x[zero])
    whole = [int(a) // int(b) for a, b in zip(x[~zero], y[~zero], strict=True)]
    np.testing.assert_array_equal(expected["floor"][~zero], wrapped(whole))
    cut = [(abs(int(a)) // abs(int(b))) * (-1 if (a < 0) != (b < 0) else 1)
           for a, b in zip(x[~zero], y[~zero], strict=True)]  # fmt: skip
    np.testing.assert_array_equal(expected["trunc"][~zero], wrapped(cut))


def test_random_divisors_are_not_zero() -> None:
    """torch raises an error for them: a model is not given what it cannot take."""
    tensors = {name: meta(DType.I64, 8, 9) for name in ("x", "r", "q")} | {"y": meta(DType.I64, 72)}
    nodes = [
        node("r", "aten.view.default", Ref("y"), (8, 9)),
        node("q", "aten.floor_divide.default", Ref("x"), Ref("r")),
    ]
    given = graph(XY, nodes, tensors, ("q",))
    made = random_inputs(given, {}, np.random.default_rng(0))
    assert (made["y"] > 0).all()
    assert len(set(made["y"].tolist())) > 2
    plan = schedule(lower(given))
    case = make_case(plan.nodes[0], plan.lowered, {}, np.random.default_rng(0))
    assert case.expected
