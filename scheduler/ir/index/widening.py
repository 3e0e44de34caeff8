"""Widening of integer values computed from indices and sizes: in 64 bits, as in torch, if they may
exceed the 32 bits of a kernel's indices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import sympy

from scheduler.fuel import spend_fuel
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.bounds import INT32_MAX, bounds
from scheduler.ir.index.functions import FloorDiv, Mod
from scheduler.ir.index.ranges import Interval, Ranges
from scheduler.ir.values import Call, Cast, Const, IndexValue, Value, rebuild, walk

#: The binary function (``ir/pointwise.py``) for each kind of expression.
CALLS: Mapping[type[Expr], str] = {
    sympy.Add: "add",
    sympy.Mul: "mul",
    FloorDiv: "floordiv",
    Mod: "remainder",
    sympy.Max: "maximum",
    sympy.Min: "minimum",
}


def widen_indices(value: Value, ranges: Ranges) -> Value:
    """Replace each ``IndexValue`` with a part that may exceed 32 bits by i64 calls.

    The remaining ones fit into 32 bits if their indices and sizes do.
    """
    if not any(
        isinstance(part, IndexValue) and not _fits(part.expr, ranges) for part in walk(value)
    ):
        return value

    def change(part: Value) -> Value | None:
        if not isinstance(part, IndexValue) or _fits(part.expr, ranges):
            return None
        wide = _widen(part.expr, ranges)
        return wide if part.dtype is DType.I64 else Cast(wide, part.dtype)

    return rebuild(value, change)


def _widen(expr: Expr, ranges: Ranges) -> Value:
    if expr.is_Integer:
        return Const(int(expr), DType.I64)
    if _fits(expr, ranges):
        return IndexValue(expr, DType.I64)
    if isinstance(expr, sympy.Pow):
        return _call_tree("mul", [_widen(expr.base, ranges)] * int(expr.exp))
    return _call_tree(
        CALLS[type(expr)], [_widen(part, ranges) for part in _operand_parts(expr, ranges)]
    )


def _operand_parts(expr: Expr, ranges: Ranges) -> Sequence[Expr]:
    """Return the operands; those of a sum or product that fit together stay one."""
    parts = tuple(expr.args)
    near = [part for part in parts if not part.is_Integer and _fits(part, ranges)]
    if not isinstance(expr, sympy.Add | sympy.Mul) or len(near) < 2:
        return parts
    together = expr.func(*near)
    if not _fits(together, ranges):
        return parts
    return together, *(part for part in parts if part not in near)


def _call_tree(name: str, parts: Sequence[Value]) -> Value:
    """Return a balanced tree of binary calls: a size may have hundreds of terms, and code that
    walks a tree recurses once per level."""
    if len(parts) == 1:
        return parts[0]
    half = (len(parts) + 1) // 2
    return Call(name, (_call_tree(name, parts[:half]), _call_tree(name, parts[half:])), DType.I64)


def _fits(expr: Expr, ranges: Ranges) -> bool:
    return _int32_interval(expr, ranges) is not None


def _int32_interval(expr: Expr, ranges: Ranges) -> Interval | None:
    """Return the interval of an expression whose indices and sizes fit into 32 bits; None if it, or
    a partial result in any order, may not fit."""
    if expr.is_Integer:
        return _int32_or_none(int(expr), int(expr))
    if expr.is_Symbol:
        low, high = bounds(expr, ranges)
        return max(low, -INT32_MAX), min(high, INT32_MAX)
    spend_fuel()
    parts = []
    for arg in expr.args:
        part = _int32_interval(arg, ranges)
        if part is None:
            return None
        parts.append(part)
    return _function(expr, parts)


def _function(expr: Expr, parts: Sequence[Interval]) -> Interval | None:
    if isinstance(expr, sympy.Add):
        if _int32_or_none(
            sum(min(low, 0) for low, _ in parts), sum(max(high, 0) for _, high in parts)
        ):
            return sum(low for low, _ in parts), sum(high for _, high in parts)
        return None
    if isinstance(expr, sympy.Mul | sympy.Pow):
        factors = [parts[0]] * int(expr.exp) if isinstance(expr, sympy.Pow) else parts
        most = math.prod(max(1, *map(abs, factor)) for factor in factors)
        below = 0 if all(low >= 0 for low, _ in factors) else -most
        return _int32_or_none(below, most)
    most = max(map(abs, parts[0]))
    if isinstance(expr, FloorDiv):
        return (0 if min(low for low, _ in parts) >= 0 else -most), most
    if isinstance(expr, Mod):
        divisor = max(map(abs, parts[1]))
        return (0 if parts[1][0] >= 0 else -divisor), divisor
    lows, highs = zip(*parts, strict=True)
    kind = max if isinstance(expr, sympy.Max) else min
    return kind(lows), kind(highs)


def _int32_or_none(low: float, high: float) -> Interval | None:
    return (low, high) if low >= -INT32_MAX and high <= INT32_MAX else None
