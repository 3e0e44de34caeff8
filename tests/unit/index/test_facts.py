"""What is said to be shown of an index is so at every point; where it is not, nothing is said."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement, product

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.ir.graph import Expr, SymbolInfo
from scheduler.ir.index.bounds import bounds
from scheduler.ir.index.facts import is_equal, is_less, is_multiple, is_nonnegative
from scheduler.ir.index.functions import FloorDiv, Mod, as_expr, symbol
from scheduler.ir.index.ranges import ANY_SIZES, Ranges
from tests.unit.index.expressions import SIZES, A, J, K, S, expressions, ranges, values

TWO, EIGHT = as_expr(2), as_expr(8)


@settings(max_examples=150, deadline=None)
@given(expressions, ranges)
def test_bounds_hold_every_value(expr: Expr, inside: Ranges) -> None:
    low, high = bounds(expr, inside)
    assert all(low <= value <= high for (value,) in values(inside, expr))


@settings(max_examples=150, deadline=None)
@given(expressions, ranges)
def test_what_is_shown_to_be_nonnegative_is(expr: Expr, inside: Ranges) -> None:
    if is_nonnegative(expr, inside):
        assert all(value >= 0 for (value,) in values(inside, expr))


@settings(max_examples=150, deadline=None)
@given(expressions, expressions, ranges)
def test_what_is_shown_to_be_less_is_less(a: Expr, b: Expr, inside: Ranges) -> None:
    if is_less(a, b, inside):
        assert all(x < y for x, y in values(inside, a, b))


@settings(max_examples=150, deadline=None)
@given(expressions, expressions, st.integers(1, 6))
def test_what_is_shown_to_be_equal_or_a_multiple_is(a: Expr, b: Expr, divisor: int) -> None:
    inside = Ranges(((A, as_expr(3)), (J, as_expr(3)), (K, as_expr(3))), SIZES)
    if is_equal(a, b):
        assert all(x == y for x, y in values(inside, a, b))
    if is_multiple(divisor * a + b, divisor):
        assert all(x % divisor == 0 for (x,) in values(inside, divisor * a + b))


@pytest.mark.parametrize(
    ("expr", "inside"),
    [
        (S - 1, ANY_SIZES),
        (FloorDiv(S, EIGHT) - 1, ANY_SIZES),
        (Mod(S, EIGHT) - 1, ANY_SIZES),
        (S - 1, Ranges(sizes=((S.name, (0, math.inf)),))),
        (FloorDiv(S, TWO) - 1, Ranges(((J, S),))),
        (J - Mod(S, J + 1), Ranges(((J, S),))),
    ],
)
def test_a_size_may_be_nothing_where_no_loop_over_it_runs(expr: Expr, inside: Ranges) -> None:
    assert not is_nonnegative(expr, inside)


@pytest.mark.parametrize(
    ("expr", "inside"),
    [
        (S - 1, Ranges(((J, S),))),
        (S - 3, Ranges(((J, S - 2),))),
        (FloorDiv(S, TWO) - 1, Ranges(((J, FloorDiv(S, TWO)),))),
        (S - 1, Ranges(((J, 4 * S * symbol("s1")),))),
        (S - 2, Ranges.from_symbols({S.name: SymbolInfo(S.name, 8, 2, None)})),
        (1024 - S, Ranges.from_symbols({S.name: SymbolInfo(S.name, 8, 2, 1024)})),
        (768 * S - 1 - (768 * J + A), Ranges(((J, S), (A, as_expr(768))))),
        (S - 1 - FloorDiv(J, TWO), Ranges(((J, 2 * S),))),
    ],
)
def test_what_loops_and_sizes_imply_is_known(expr: Expr, inside: Ranges) -> None:
    assert is_nonnegative(expr, inside)


def test_ends_are_exact_beyond_what_a_float_holds() -> None:
    most = 2**60 - 1
    inside = Ranges(sizes=((S.name, (most, most)),))
    assert bounds(FloorDiv(S, TWO), inside) == (most // 2, most // 2)
    huge = sympy.Integer(2) ** 2000
    assert bounds(huge * S, ANY_SIZES) == (0, math.inf)
    assert bounds(huge + S, ANY_SIZES) == (2**2000, math.inf)


def test_a_quotient_lies_between_the_least_and_the_greatest_that_there_is() -> None:
    """Of dividends of either sign, and divisors above 0: exactly, whatever the ends are."""
    a, b = symbol("a"), symbol("b")
    dividends = combinations_with_replacement(range(-7, 8), 2)
    divisors = tuple(combinations_with_replacement(range(1, 6), 2))
    for (low, high), (least, most) in product(dividends, divisors):
        inside = Ranges(sizes=(("a", (low, high)), ("b", (least, most))))
        pairs = list(product(range(low, high + 1), range(least, most + 1)))
        quotients = [x // y for x, y in pairs]
        assert bounds(FloorDiv(a, b), inside) == (min(quotients), max(quotients))
        first, last = bounds(Mod(a, b), inside)
        assert all(first <= x % y <= last for x, y in pairs)
        assert first >= 0
        assert last < most
