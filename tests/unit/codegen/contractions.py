"""Contractions built by hand, without a frontend, and a way to run their kernels."""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from scheduler.fusion.nodes import GroupKind, Schedule, SchedulerNode
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Graph, SymbolInfo
from scheduler.ir.indexing import as_expr, symbol
from scheduler.ir.operations import Axis, Buffer, BufferKind, Contraction, Lowered, Store
from scheduler.ir.values import Accumulator, Call, Cast, Load, Value, loads

Size = int | sympy.Expr


def axis(name: str, size: Size) -> Axis:
    return Axis(symbol(name), as_expr(size))


def buffer(
    name: str,
    dtype: DType,
    size: Sequence[Size],
    stride: Sequence[Size] | None = None,
    kind: BufferKind = BufferKind.INPUT,
) -> Buffer:
    if stride is None:
        steps: list[Size] = []
        step: Size = 1
        for extent in reversed(size):
            steps.insert(0, step)
            step = step * extent
        stride = steps
    return Buffer(name, dtype, tuple(map(as_expr, size)), tuple(map(as_expr, stride)), kind, name)


def stored(value: Value, dtype: DType) -> Value:
    return value if value.dtype is dtype else Cast(value, dtype)


def accumulated(dtype: DType) -> Accumulator:
    return Accumulator(DType.F64 if dtype is DType.F64 else DType.F32)


def scheduled(
    members: Sequence[Contraction],
    buffers: Sequence[Buffer],
    kind: GroupKind = GroupKind.GEMM,
    symbols: dict[str, SymbolInfo] | None = None,
) -> Schedule:
    graph = Graph("test", "0", symbols or {}, (), (), (), {}, {})
    by_name = {item.name: item for item in buffers}
    writes = tuple(store.buffer for member in members for store in member.stores)
    reads = tuple(
        dict.fromkeys(
            load.buffer
            for member in members
            for tree in (member.a, member.b, *(store.value for store in member.stores))
            for load in loads(tree)
        )
    )
    node = SchedulerNode(
        "node0",
        kind,
        tuple(members),
        (sympy.Integer(1), sympy.Integer(1)),
        reads,
        writes,
        tuple(name for member in members for name in member.nodes),
    )
    lowered = Lowered(graph, by_name, tuple(members), reads, writes)
    return Schedule(lowered, (node,), (), {}, {})


def matmul(
    m: Size,
    n: Size,
    k: Size,
    dtype: DType,
    *,
    batch: Size | None = None,
    a_stride: Sequence[Size] | None = None,
    b_transposed: bool = False,
    bias: Sequence[Size] | None = None,
    same: bool = False,
    relu: bool = False,
    symbols: dict[str, SymbolInfo] | None = None,
) -> Schedule:
    """mm, bmm or addmm; ``b_transposed``: B lies in memory as [n, k] (a linear's weight)."""
    outer = [] if batch is None else [axis("b", batch)]
    am, an, ak = axis("i", m), axis("j", n), axis("l", k)
    lead = [] if batch is None else [batch]
    x = buffer("arg0", dtype, [*lead, m, k], a_stride)
    w = buffer("arg1", dtype, [*lead, n, k] if b_transposed else [*lead, k, n])
    y = buffer("buf0", dtype, [*lead, m, n], kind=BufferKind.OUTPUT)
    before = tuple(item.var for item in outer)
    a = Load("arg0", (*before, am.var, ak.var), dtype)
    b_index = (an.var, ak.var) if b_transposed else (ak.var, an.var)
    b = Load("arg0" if same else "arg1", (*before, *b_index), dtype)
    value: Value = accumulated(dtype)
    buffers = [x, y] if same else [x, w, y]
    if bias is not None:
        buffers.append(buffer("bias", dtype, bias))
        place = (am.var, an.var)[2 - len(bias) :]
        index = tuple(v if size != 1 else as_expr(0) for v, size in zip(place, bias, strict=True))
        read = stored(Load("bias", index, dtype), value.dtype)
        value = Call("add", (value, read), value.dtype)
    if relu:
        value = Call("relu", (value,), value.dtype)
    store = Store("buf0", (*before, am.var, an.var), stored(value, dtype))
    contraction = Contraction(
        "op0",
        "gemm",
        "mm" if batch is None else "bmm",
        tuple(outer),
        (am,),
        (an,),
        (ak,),
        a,
        b,
        (store,),
        ("mm",),
    )
    return scheduled([contraction], buffers, symbols=symbols)
