"""Numeric intervals of integer expressions, for the sign and width of indices."""

from __future__ import annotations

import math
from collections.abc import Iterable

import sympy

from scheduler.fuel import spend_fuel
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv, Mod
from scheduler.ir.index.ranges import Interval, Ranges
from scheduler.limits import MAX_COEFFICIENT_BITS

INT32_MAX = 2**31 - 1
_MAX_COEFFICIENT = 1 << MAX_COEFFICIENT_BITS  # larger ends count as infinite
_ANY: Interval = (-math.inf, math.inf)


def bounds(expr: Expr, ranges: Ranges) -> Interval:
    """Return an interval that contains every value of ``expr``; not tight for related terms.

    Finite ends are exact integers.
    """
    if expr.is_Integer:
        return int(expr), int(expr)
    spend_fuel()
    low, high = _symbol(expr, ranges) if expr.is_Symbol else _function(expr, ranges)
    return max(low, ranges.lower_bounds.get(expr, low)), high


def _symbol(symbol: sympy.Symbol, ranges: Ranges) -> Interval:
    extent = ranges.extents.get(symbol)
    if extent is not None:
        return 0, max(bounds(extent, ranges)[1] - 1, 0)
    known = ranges.intervals.get(symbol.name)
    return known or (0 if symbol.is_nonnegative else -math.inf, math.inf)


def _function(expr: Expr, ranges: Ranges) -> Interval:
    parts = [bounds(arg, ranges) for arg in expr.args]
    if isinstance(expr, sympy.Add):
        return _sum(low for low, _ in parts), _sum(high for _, high in parts)
    if isinstance(expr, sympy.Mul):
        return _product(parts)
    if isinstance(expr, sympy.Max):
        return max(low for low, _ in parts), max(high for _, high in parts)
    if isinstance(expr, sympy.Min):
        return min(low for low, _ in parts), min(high for _, high in parts)
    if isinstance(expr, FloorDiv):
        return _quotient(*parts)
    if isinstance(expr, Mod):
        return _remainder(*parts)
    if isinstance(expr, sympy.Pow) and expr.args[1].is_Integer and int(expr.args[1]) > 0:
        return _product([parts[0]] * int(expr.args[1]))
    return _ANY


def _is_infinite(end: float) -> bool:
    return abs(end) == math.inf  # math.isinf raises for integers beyond the range of floats


def _sum(ends: Iterable[float]) -> float:
    """Return the sum of lower ends, or of upper ends, which are infinite on one side only."""
    total: float = 0
    for end in ends:
        if _is_infinite(total) or _is_infinite(end):
            total = total if _is_infinite(total) else end
        else:
            total += end
    return total


def _product(parts: list[Interval]) -> Interval:
    low, high = parts[0]
    for part in parts[1:]:
        corners = [_times(x, y) for x in (low, high) for y in part]
        low, high = min(corners), max(corners)
    return low, high


def _times(x: float, y: float) -> float:
    # An infinity stands for "some large integer", and 0 times that is 0.
    if x == 0 or y == 0:
        return 0
    if _is_infinite(x) or _is_infinite(y):
        return math.inf if (x > 0) == (y > 0) else -math.inf
    product = x * y
    if -_MAX_COEFFICIENT < product < _MAX_COEFFICIENT:
        return product
    return math.inf if product > 0 else -math.inf


def _quotient(a: Interval, b: Interval) -> Interval:
    if b[0] <= 0:
        return _ANY
    return _divide(a[0], b[0] if a[0] < 0 else b[1]), _divide(a[1], b[0] if a[1] >= 0 else b[1])


def _divide(a: float, b: float) -> float:
    if _is_infinite(a):
        return a
    return a // b if not _is_infinite(b) else (-1 if a < 0 else 0)


def _remainder(a: Interval, b: Interval) -> Interval:
    if b[0] <= 0:
        return _ANY
    if a[0] >= 0 and a[1] < b[0]:
        return a
    return 0, min(b[1] - 1, a[1]) if a[0] >= 0 else b[1] - 1
