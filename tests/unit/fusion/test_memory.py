"""Allocations that buffers share hold each of them at every size that the export allows."""

from __future__ import annotations

import pytest
import sympy

from scheduler.fusion.memory import plan, size_bytes, with_frees
from scheduler.fusion.nodes import GroupKind, SchedulerNode
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import SymbolInfo
from scheduler.ir.index.functions import as_expr, evaluate, symbol
from scheduler.ir.operations import Buffer, BufferKind

ONE = as_expr(1)


def node(name: str, reads: tuple[str, ...], writes: str) -> SchedulerNode:
    return SchedulerNode(name, GroupKind.POINTWISE, (), (ONE, ONE), reads, (writes,), ())


def row(name: str, size: sympy.Expr) -> Buffer:
    return Buffer(name, DType.F32, (size,), (ONE,), BufferKind.INTERMEDIATE, name)


@pytest.mark.parametrize("least", [0, 1, 2])
@pytest.mark.parametrize("fixed", [1, 2, 3])
def test_a_shared_allocation_holds_each_buffer_at_every_size(least: int, fixed: int) -> None:
    """A size may be 0: then memory of that size holds nothing of what has a fixed one."""
    symbols = {"s0": SymbolInfo("s0", 8, least, 16)}
    buffers = {
        "a": row("a", symbol("s0")),
        "b": row("b", symbol("s0")),
        "c": row("c", as_expr(fixed)),
        "d": row("d", as_expr(fixed)),
    }
    nodes = with_frees(
        (
            node("first", (), "a"),
            node("second", ("a",), "b"),
            node("third", ("b",), "c"),
            node("fourth", ("c",), "d"),
        ),
        buffers,
    )
    storage, pools = plan(nodes, buffers, symbols)
    for size in range(least, 17):
        held = {name: evaluate(pool, {"s0": size}) for name, pool in pools.items()}
        for name, buffer in buffers.items():
            assert evaluate(size_bytes(buffer), {"s0": size}) <= held[storage[name]]
