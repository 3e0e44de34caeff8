"""Intervals of integer expressions: what sign and width an index can have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

import sympy

from scheduler.ir.graph import Expr, SymbolInfo
from scheduler.ir.index.functions import FloorDiv, Mod

#: Least and greatest value; an infinity where there is no bound.
Interval: TypeAlias = tuple[float, float]
Ranges: TypeAlias = Mapping[str, Interval]

INT32_MAX = 2**31 - 1


def symbol_ranges(symbols: Mapping[str, SymbolInfo]) -> dict[str, Interval]:
    """The ranges of a graph's symbolic sizes, as the export guarantees them."""
    return {
        name: (info.minimum, math.inf if info.maximum is None else info.maximum)
        for name, info in symbols.items()
    }


def bounds(expr: Expr, ranges: Ranges) -> Interval:
    """An interval that holds every value of ``expr``; wider than needed where terms are related.

    A symbol without a range is taken by its assumptions. Floats hold integers exactly to 2**53,
    which is beyond any index that fits memory.
    """
    if expr.is_Integer:
        return int(expr), int(expr)
    if expr.is_Symbol:
        known = ranges.get(expr.name)
        return known or (0 if expr.is_nonnegative else -math.inf, math.inf)
    parts = [bounds(arg, ranges) for arg in expr.args]
    return _combine(expr, parts)


def _combine(expr: Expr, parts: list[Interval]) -> Interval:
    if isinstance(expr, sympy.Add):
        return sum(low for low, _ in parts), sum(high for _, high in parts)
    if isinstance(expr, sympy.Mul):
        product = parts[0]
        for part in parts[1:]:
            product = _corners(product, part)
        return product
    if isinstance(expr, sympy.Max):
        return max(low for low, _ in parts), max(high for _, high in parts)
    if isinstance(expr, sympy.Min):
        return min(low for low, _ in parts), min(high for _, high in parts)
    if isinstance(expr, FloorDiv):
        return _quotient(*parts)
    if isinstance(expr, Mod):
        return _remainder(*parts)
    if isinstance(expr, sympy.Pow) and expr.args[1].is_Integer and int(expr.args[1]) > 0:
        product = parts[0]
        for _ in range(int(expr.args[1]) - 1):
            product = _corners(product, parts[0])
        return product
    return -math.inf, math.inf


def _corners(a: Interval, b: Interval) -> Interval:
    # 0 * inf is 0 here: an infinity stands for "some large integer", and 0 times that is 0.
    corners = [0 if x == 0 or y == 0 else x * y for x in a for y in b]
    return min(corners), max(corners)


def _quotient(a: Interval, b: Interval) -> Interval:
    if b[0] <= 0:
        return -math.inf, math.inf
    low = a[0] / (b[0] if a[0] < 0 else b[1])
    high = a[1] / (b[0] if a[1] >= 0 else b[1])
    return _floor(low), _floor(high)


def _floor(value: float) -> float:
    return value if math.isinf(value) or math.isnan(value) else math.floor(value)


def _remainder(a: Interval, b: Interval) -> Interval:
    if b[0] <= 0:
        return -math.inf, math.inf
    if a[0] >= 0 and a[1] < b[0]:
        return a
    return 0, min(b[1] - 1, a[1]) if a[0] >= 0 else b[1] - 1


def nonnegative(expr: Expr, ranges: Ranges) -> bool:
    """Whether no value of ``expr`` is below zero."""
    return bounds(expr, ranges)[0] >= 0
