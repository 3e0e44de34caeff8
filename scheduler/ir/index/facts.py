"""Provable facts about index expressions: sign, order, equality, divisibility.

True means that a fact holds at every point of the ranges; False means unknown.
"""

from __future__ import annotations

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.bounds import bounds
from scheduler.ir.index.polynomial import TooLargeError
from scheduler.ir.index.ranges import ANY_SIZES, Ranges
from scheduler.ir.index.simplify import simplifier, simplify


def is_nonnegative(expr: Expr, ranges: Ranges = ANY_SIZES) -> bool:
    """Whether ``expr >= 0``."""
    if bounds(expr, ranges)[0] >= 0:
        return True
    try:
        return simplifier(ranges).is_nonnegative(expr)
    except TooLargeError:
        return False


def is_less(a: Expr, b: Expr, ranges: Ranges = ANY_SIZES) -> bool:
    """Whether ``a < b``."""
    return is_nonnegative(b - a - 1, ranges)


def is_equal(a: Expr, b: Expr) -> bool:
    """Whether ``a == b`` for all values of their symbols."""
    if a == b:
        return True
    try:
        return bool(simplify(a - b) == 0)
    except TooLargeError:
        return False


def is_multiple(expr: Expr, divisor: int) -> bool:
    """Whether ``expr`` is a multiple of ``divisor`` for all values of its symbols."""
    if divisor == 1:
        return True
    for term in sympy.Add.make_args(expr):
        number, _ = term.as_coeff_Mul()
        if not number.is_Integer or int(number) % divisor != 0:
            return False
    return True
