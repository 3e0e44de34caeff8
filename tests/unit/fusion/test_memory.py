"""Allocations that buffers share hold each of them at every size that the export allows."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

from scheduler.fusion import schedule
from scheduler.fusion.memory import loop_carried_reads, plan_memory, size_bytes, with_frees
from scheduler.fusion.nodes import GroupKind, SchedulerNode
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import SymbolInfo
from scheduler.ir.index.functions import as_expr, evaluate, symbol
from scheduler.ir.operations import Buffer, BufferKind, LoopBegin, LoopEnd
from scheduler.lowering import lower
from tests.unit.lowering.running import run_schedule
from tests.unit.lowering.test_loops import with_addend

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
    storage, pools = plan_memory(nodes, buffers, symbols)
    for size in range(least, 17):
        held = {name: evaluate(pool, {"s0": size}) for name, pool in pools.items()}
        for name, buffer in buffers.items():
            assert evaluate(size_bytes(buffer), {"s0": size}) <= held[storage[name]]


def loop(name: str, reads: tuple[str, ...] = ()) -> tuple[SchedulerNode, SchedulerNode]:
    """The marks of a loop that renames ``start`` to ``inside`` and ``next`` to ``after``."""
    steps, carried = as_expr(3), (("start", "inside"),)
    begin = LoopBegin(name, "scan", name, steps, "", carried, (), 0, ())
    end = LoopEnd(f"{name}_end", begin, "", (("next", "after"),), (), ())
    group = (ONE, ONE)
    return (
        SchedulerNode(
            begin.name, GroupKind.LOOP, (begin,), group, ("start", *reads), begin.writes, ()
        ),
        SchedulerNode(end.name, GroupKind.LOOP, (end,), group, end.reads, end.writes, ()),
    )


def rows(*names: str) -> dict[str, Buffer]:
    return {name: row(name, as_expr(8)) for name in names}


def in_a_loop() -> tuple[SchedulerNode, ...]:
    """Each step reads ``given``, which was made before, and then makes two more rows."""
    begin, end = loop("loop")
    return (
        node("first", (), "start"),
        node("second", ("start",), "given"),
        begin,
        node("reader", ("inside", "given"), "half"),
        node("step", ("half",), "more"),
        node("last", ("more",), "next"),
        end,
        node("behind", ("after",), "late"),
    )


NAMES = ("start", "given", "inside", "half", "more", "next", "after", "late")


def test_what_a_body_reads_is_needed_until_the_loops_end() -> None:
    nodes = in_a_loop()
    assert dict(loop_carried_reads(nodes)) == {"start": 6, "given": 6}
    assert list(loop_carried_reads(nodes[:2])) == []


def test_what_each_step_reads_is_freed_at_the_loops_end() -> None:
    """What a step makes is freed after its last reader, as everywhere."""
    freed = {one.name: one.frees for one in with_frees(in_a_loop(), rows(*NAMES))}
    assert freed["loop_end"] == ("given",)
    assert freed["step"] == ("half",)
    assert freed["last"] == ("more",)
    assert [name for name, names in freed.items() if "given" in names] == ["loop_end"]


def test_a_step_does_not_write_over_what_the_next_step_reads() -> None:
    nodes = with_frees(in_a_loop(), rows(*NAMES))
    storage, _ = plan_memory(nodes, rows(*NAMES), {})
    assert storage["given"] not in {storage["half"], storage["more"]}
    assert storage["late"] in {storage["given"], storage["half"], storage["more"]}


def test_what_the_outer_loop_reads_again_is_kept_until_its_own_end() -> None:
    """Read in the inner loop, but not made in the outer one."""
    outer, outer_end = loop("outer")
    inner, inner_end = loop("inner")
    nodes = (
        node("first", (), "given"),
        outer,
        inner,
        node("reader", ("given",), "half"),
        inner_end,
        node("between", ("half",), "more"),
        outer_end,
    )
    freed = {one.name: one.frees for one in with_frees(nodes, rows(*NAMES))}
    assert "given" in freed["outer_end"]
    assert "given" not in freed["inner_end"]


def test_what_a_step_makes_itself_is_freed_in_the_step() -> None:
    begin, end = loop("loop")
    nodes = (
        begin,
        node("makes", ("inside",), "half"),
        node("reads", ("half",), "more"),
        node("goes on", ("more",), "next"),
        end,
    )
    freed = {one.name: one.frees for one in with_frees(nodes, rows(*NAMES))}
    assert freed["reads"] == ("half",)
    assert freed["goes on"] == ("more",)


@pytest.mark.parametrize("fuse", [False, True])
def test_a_loop_computes_the_same_where_its_input_is_read_in_each_step(fuse: bool) -> None:
    """Run with memory as it is planned: what is freed in a step is gone in the next one."""
    rng = np.random.default_rng(5)
    x, w = rng.uniform(0.9, 1.1, (100, 3)), rng.uniform(-0.1, 0.1, 3)
    expected = [x[0]]
    for each in x[1:]:
        expected.append(expected[-1] * each + np.cumsum(w))
    made = schedule(lower(with_addend(100)), fuse=fuse)
    got = run_schedule(made, {"x": x, "w": w}, {})
    np.testing.assert_allclose(got["y"], expected, rtol=1e-9)
