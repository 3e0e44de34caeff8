"""Contractions built by hand, without a frontend, and a way to run their kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import sympy

from scheduler.fusion.nodes import Schedule, SchedulerNode
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Graph, Node, SymbolInfo
from scheduler.ir.index.functions import FloorDiv, Mod, as_expr, symbol
from scheduler.ir.operations import Axis, Buffer, BufferKind, Contraction, GroupKind, Lowered, Store
from scheduler.ir.values import (
    Accumulator,
    Call,
    Cast,
    Const,
    IndexValue,
    Indirect,
    Load,
    Masked,
    Value,
    loads,
    rebuild,
)
from tests.support.memory import contiguous

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
        stride = contiguous(size)
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
    names = [name for member in members for name in member.nodes]
    calls = tuple(
        Node(name, f"aten.{name.partition('_')[0]}.default", (), {}, ()) for name in names
    )
    graph = Graph("test", "0", symbols or {}, (), (), calls, {}, {})
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
        value = Call("maximum", (value, Const(0.0, value.dtype)), value.dtype)
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


def shared_input(
    m: Size, ns: Sequence[Size], k: Size, dtype: DType, *, bias: bool = True
) -> Schedule:
    """Several linears of one input (q, k, v), each with its own weight [n, k] and bias."""
    am, ak = axis("i", m), axis("l", k)
    a = Load("x", (am.var, ak.var), dtype)
    buffers = [buffer("x", dtype, [m, k])]
    members = []
    for position, n in enumerate(ns):
        an = axis(f"j{position}", n)
        weight, out, shift = f"w{position}", f"y{position}", f"bias{position}"
        buffers += [
            buffer(weight, dtype, [n, k]),
            buffer(shift, dtype, [n]),
            buffer(out, dtype, [m, n], kind=BufferKind.OUTPUT),
        ]
        value: Value = accumulated(dtype)
        if bias:
            value = Call(
                "add", (value, stored(Load(shift, (an.var,), dtype), value.dtype)), value.dtype
            )
        store = Store(out, (am.var, an.var), stored(value, dtype))
        b = Load(weight, (an.var, ak.var), dtype)
        members.append(
            Contraction(
                f"op{position}",
                "gemm",
                "linear",
                (),
                (am,),
                (an,),
                (ak,),
                a,
                b,
                (store,),
                (f"linear_{position}",),
            )
        )
    return scheduled(members, buffers)


def convolution(
    x_size: Sequence[int],
    w_size: Sequence[int],
    dtype: DType,
    *,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    channels_last: bool = False,
    bias: bool = False,
) -> Schedule:
    """conv2d of x [n, c, h, w] with weight [oc, c / groups, kh, kw]."""
    n, c, h, w = x_size
    oc, cg, kh, kw = w_size
    assert cg * groups == c
    oh = (h + 2 * padding - dilation * (kh - 1) - 1) // stride + 1
    ow = (w + 2 * padding - dilation * (kw - 1) - 1) // stride + 1
    ag, an, ay, ax = axis("g", groups), axis("m0", n), axis("m1", oh), axis("m2", ow)
    ao, ac, aky, akx = axis("n0", oc // groups), axis("k0", cg), axis("k1", kh), axis("k2", kw)

    def laid_out(name: str, size: Sequence[int], kind: BufferKind = BufferKind.INPUT) -> Buffer:
        if not channels_last:
            return buffer(name, dtype, size, kind=kind)
        _, ch, hh, ww = size
        return buffer(name, dtype, size, [hh * ww * ch, 1, ww * ch, ch], kind)

    y = ay.var * stride - padding + aky.var * dilation
    x = ax.var * stride - padding + akx.var * dilation
    load = Load("x", (an.var, ag.var * cg + ac.var, y, x), dtype)
    conditions = [
        Call(op, (IndexValue(expr, DType.I64), IndexValue(as_expr(limit), DType.I64)), DType.BOOL)
        for expr, extent in ((y, h), (x, w))
        for op, limit in (("ge", 0), ("lt", extent))
    ]
    condition: Value = conditions[0]
    for other in conditions[1:]:
        condition = Call("logical_and", (condition, other), DType.BOOL)
    a: Value = Masked(condition, load, Const(0.0, dtype)) if padding else load
    channel = ag.var * (oc // groups) + ao.var
    b = Load("w", (channel, ac.var, aky.var, akx.var), dtype)
    value: Value = accumulated(dtype)
    buffers = [
        laid_out("x", x_size),
        laid_out("w", w_size),
        laid_out("y", [n, oc, oh, ow], BufferKind.OUTPUT),
    ]
    if bias:
        buffers.append(buffer("bias", dtype, [oc]))
        read = stored(Load("bias", (channel,), dtype), value.dtype)
        value = Call("add", (value, read), value.dtype)
    store = Store("y", (an.var, channel, ay.var, ax.var), stored(value, dtype))
    contraction = Contraction(
        "op0",
        "convolution",
        "conv2d",
        (ag,) if groups > 1 else (),
        (an, ay, ax),
        (ao,),
        (ac, aky, akx),
        _without(a, ag.var, groups),
        _without(b, ag.var, groups),
        (
            replace(
                store,
                index=tuple(_at_group(i, ag.var, groups) for i in store.index),
                value=_without(store.value, ag.var, groups),
            ),
        ),
        ("conv2d",),
    )
    return scheduled([contraction], buffers, GroupKind.CONVOLUTION)


def _at_group(expr: sympy.Expr, var: sympy.Symbol, groups: int) -> sympy.Expr:
    return expr.subs(var, 0) if groups == 1 else expr


def _without(value: Value, var: sympy.Symbol, groups: int) -> Value:
    """The tree with the group's index gone where there is one group only."""

    def change(part: Value) -> Value | None:
        if isinstance(part, Load):
            return replace(part, index=tuple(_at_group(i, var, groups) for i in part.index))
        return None

    return rebuild(value, change)


def gathered_gelu(m: int, n: int, k: int, rows: int, dtype: DType) -> Schedule:
    """linear(tanh(x), w) * scale[ids], with a residual added in place of a bias.

    A is computed element by element (a prologue); the epilogue reads through an index.
    """
    am, an, ak = axis("i", m), axis("j", n), axis("l", k)
    x = Load("x", (am.var, ak.var), dtype)
    a = Cast(Call("tanh", (stored(x, DType.F32),), DType.F32), dtype)
    b = Load("w", (an.var, ak.var), dtype)
    row = symbol("indirect0")
    place = Indirect(row, Load("ids", (am.var,), DType.I64), as_expr(rows))
    scale = stored(Load("scale", (row, an.var), dtype, (place,)), DType.F32)
    residual = stored(Load("residual", (am.var, an.var), dtype), DType.F32)
    value = Call("mul", (Accumulator(DType.F32), scale), DType.F32)
    value = Call("add", (value, residual), DType.F32)
    store = Store("y", (am.var, an.var), stored(value, dtype))
    buffers = [
        buffer("x", dtype, [m, k]),
        buffer("w", dtype, [n, k]),
        buffer("ids", DType.I64, [m]),
        buffer("scale", dtype, [rows, n]),
        buffer("residual", dtype, [m, n]),
        buffer("y", dtype, [m, n], kind=BufferKind.OUTPUT),
    ]
    contraction = Contraction(
        "op0", "gemm", "linear", (), (am,), (an,), (ak,), a, b, (store,), ("linear",)
    )
    return scheduled([contraction], buffers)


def scores(
    batch: int, heads: int, sharing: int, rows: Size, columns: Size, depth: int, dtype: DType,
    symbols: dict[str, SymbolInfo] | None = None,
) -> Schedule:  # fmt: skip
    """q k^T of attention with [batch, sequence, heads, depth] in memory: three batch axes that do
    not fall together, of which ``sharing`` heads of q read the same k."""
    ab, ah, ar = axis("b", batch), axis("h", heads), axis("r", sharing)
    am, an, ak = axis("i", rows), axis("j", columns), axis("l", depth)
    head = ah.var * sharing + ar.var
    store = Store("y", (ab.var, head, am.var, an.var), stored(Accumulator(DType.F32), dtype))
    buffers = [
        buffer("q", dtype, [batch, rows, heads * sharing, depth]),
        buffer("k", dtype, [batch, columns, heads, depth]),
        buffer("y", dtype, [batch, heads * sharing, rows, columns], kind=BufferKind.OUTPUT),
    ]
    contraction = Contraction(
        "op0",
        "gemm",
        "bmm",
        (ab, ah, ar),
        (am,),
        (an,),
        (ak,),
        Load("q", (ab.var, am.var, head, ak.var), dtype),
        Load("k", (ab.var, an.var, ah.var, ak.var), dtype),
        (store,),
        ("bmm",),
    )
    return scheduled([contraction], buffers, symbols=symbols)


def split_heads(batch: int, sequence: int, heads: int, n: int, dtype: DType) -> Schedule:
    """linear of attention's output [batch, heads, sequence, 64]: k runs over (head, depth)."""
    am, an, ak = axis("i", batch * sequence), axis("j", n), axis("l", heads * 64)
    s = as_expr(sequence)
    index = (
        FloorDiv(am.var, s),
        FloorDiv(ak.var, as_expr(64)),
        Mod(am.var, s),
        Mod(ak.var, as_expr(64)),
    )
    store = Store("y", (am.var, an.var), stored(Accumulator(DType.F32), dtype))
    buffers = [
        buffer("x", dtype, [batch, heads, sequence, 64]),
        buffer("w", dtype, [n, heads * 64]),
        buffer("y", dtype, [batch * sequence, n], kind=BufferKind.OUTPUT),
    ]
    contraction = Contraction(
        "op0",
        "gemm",
        "linear",
        (),
        (am,),
        (an,),
        (ak,),
        Load("x", index, dtype),
        Load("w", (an.var, ak.var), dtype),
        (store,),
        ("linear",),
    )
    return scheduled([contraction], buffers)


def rows_before(m: int, n: int, heads: int, rows: int, dtype: DType) -> Schedule:
    """linear of the rows before those that ``ids`` names, the first row for the first one.

    x lies as [heads, rows, 64] and k runs over (head, depth).
    """
    am, an, ak = axis("i", m), axis("j", n), axis("l", heads * 64)
    row = symbol("indirect0")
    place = Indirect(row, Load("ids", (am.var,), DType.I64), as_expr(rows))
    depth = as_expr(64)
    index = (FloorDiv(ak.var, depth), sympy.Max(0, row - 1), Mod(ak.var, depth))
    store = Store("y", (am.var, an.var), stored(Accumulator(DType.F32), dtype))
    buffers = [
        buffer("x", dtype, [heads, rows, 64]),
        buffer("w", dtype, [n, heads * 64]),
        buffer("ids", DType.I64, [m]),
        buffer("y", dtype, [m, n], kind=BufferKind.OUTPUT),
    ]
    contraction = Contraction(
        "op0",
        "gemm",
        "linear",
        (),
        (am,),
        (an,),
        (ak,),
        Load("x", index, dtype, (place,)),
        Load("w", (an.var, ak.var), dtype),
        (store,),
        ("linear",),
    )
    return scheduled([contraction], buffers)
