"""The sine of a large argument: what the argument's own rounding does to it is no kernel's fault,
and nothing else gets past the gate with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler.benchmark.case import Case
from scheduler.benchmark.case_builder import make_case
from scheduler.benchmark.gate import check_outputs
from scheduler.fusion import schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Argument, GraphInput, InputKind, Ref
from scheduler.lowering import lower
from tests.unit.lowering.graphs import graph, meta, node

POSITIONS, FREQUENCIES = 257, 32


def _case(*calls: tuple[str, Argument]) -> Case:
    """Positions times frequencies, then the calls one after the other, as one kernel."""
    tensors = {"frequency": meta(DType.F32, FREQUENCIES), "where": meta(DType.I64, POSITIONS)}
    names = ["position", "column", "angle", *(f"y{i}" for i in range(len(calls)))]
    tensors["position"] = meta(DType.F32, POSITIONS)
    tensors["column"] = meta(DType.F32, POSITIONS, 1)
    tensors |= {name: meta(DType.F32, POSITIONS, FREQUENCIES) for name in names[2:]}
    nodes = [
        node("where", "aten.arange.default", POSITIONS),
        node("position", "aten.to.dtype", Ref("where"), DType.F32),
        node("column", "aten.unsqueeze.default", Ref("position"), 1),
        node("angle", "aten.mul.Tensor", Ref("column"), Ref("frequency")),
        *(
            node(f"y{i}", f"aten.{op}", Ref(names[2 + i]), *more)
            for i, (op, *more) in enumerate(calls)
        ),
    ]
    inputs = [GraphInput("frequency", InputKind.USER)]
    plan = schedule(lower(graph(inputs, nodes, tensors, (names[-1],))))
    (kernel,) = plan.nodes
    return make_case(kernel, plan.lowered, {}, np.random.default_rng([0, 3]))


def _angles(case: Case) -> Any:
    """As float32 holds them."""
    (frequency,) = case.inputs.values()
    return (np.arange(POSITIONS, dtype=np.float32)[:, None] * frequency).astype(np.float64)


def _passes(case: Case, got: Any) -> bool:
    (name,) = case.expected
    return check_outputs(case, {name: got.astype(np.float32).reshape(-1)}, ()).passed


@pytest.mark.parametrize("op", ["sin", "cos", "tan"])
def test_the_function_of_the_rounded_angle_is_right(op: str, tmp_path: Path) -> None:
    """As a kernel in float32 has it at best. The worst angle, 204 * 2.64, is off by 3e-5."""
    _case((f"{op}.default",)).save(tmp_path)
    case = Case.load(tmp_path)
    (expected,) = case.expected.values()
    got = getattr(np, op)(_angles(case))
    assert np.abs(got - expected).max() > 2e-5, "the angles are too small to show anything"
    assert _passes(case, got)


def test_what_follows_the_function_carries_it_on() -> None:
    case = _case(("cos.default",), ("mul.Tensor", 100.0))
    got = 100.0 * np.cos(_angles(case))
    assert _passes(case, got)
    assert not _passes(case, got + 5e-3)


def test_an_angle_in_half_precision_does_not_pass() -> None:
    case = _case(("cos.default",))
    assert not _passes(case, np.cos(_angles(case).astype(np.float16).astype(np.float64)))


def test_only_elements_with_a_large_angle_are_given_more() -> None:
    """At the positions 0 and 1 angles are small."""
    case = _case(("cos.default",))
    (carried,) = case.carried.values()
    assert carried[:2].max() < 2e-6
    got = np.cos(_angles(case))
    got[1, 0] += 1e-5
    assert not _passes(case, got)
