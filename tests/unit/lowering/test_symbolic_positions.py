"""Positions that depend on a symbolic size: counted from the front only where they cannot be
negative."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

from scheduler.fusion import schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Graph, GraphInput, InputKind, Ref, SymbolInfo
from scheduler.ir.index.functions import symbol
from scheduler.ir.operations import Extern
from scheduler.lowering import lower
from tests.unit.lowering.graphs import graph, meta, node
from tests.unit.lowering.running import run_schedule

S = symbol("s0")


def selected(position: sympy.Expr, least: int) -> Graph:
    """``-x[position]`` of x [s0]."""
    tensors = {"x": meta(DType.F32, S), "y": meta(DType.F32), "z": meta(DType.F32)}
    nodes = [
        node("y", "aten.select.int", Ref("x"), 0, position),
        node("z", "aten.neg.default", Ref("y")),
    ]
    symbols = {"s0": SymbolInfo("s0", 8, least, 64)}
    return graph([GraphInput("x", InputKind.USER)], nodes, tensors, ("z",), symbols)


@pytest.mark.parametrize(
    ("position", "least", "element"),
    [(S - 1, 1, -1), (S - 2, 2, -2), (sympy.Integer(-2), 2, -2), (sympy.Integer(1), 2, 1)],
)
def test_the_element_at_a_position_is_read(position: sympy.Expr, least: int, element: int) -> None:
    plan = schedule(lower(selected(position, least)))
    for size in (2, 5):
        x = np.arange(1.0, size + 1)
        assert run_schedule(plan, {"x": x}, {"s0": size})["z"] == -x[element]


def test_a_position_of_unknown_sign_is_left_to_the_reference() -> None:
    """s0 - 3 counts from the front or from the end, as s0 is."""
    (first, *_) = lower(selected(S - 3, 1)).operations
    assert isinstance(first, Extern)
    assert "its sign is unknown" in first.reason
