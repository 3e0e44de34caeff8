"""The index simplifier: equal at every point of the loops, and simple where it matters."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import pytest
import sympy
from hypothesis import given, settings

from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv, Mod, symbol
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.index.simplify import simplify
from tests.unit.index.expressions import A, J, K, S, expressions, ranges, values

M, N = symbol("m0"), symbol("n0")


@pytest.mark.full
@settings(max_examples=300, deadline=None)
@given(expressions, ranges)
def test_simplified_expressions_are_equal_at_every_point(expr: Expr, inside: Ranges) -> None:
    simple = simplify(expr, inside)
    assert all(before == after for before, after in values(inside, expr, simple))


def test_rules_for_positive_divisors_leave_others_alone() -> None:
    """(x // a) // b = x // (a * b) holds for no negative b."""
    minus = sympy.Integer(-2)
    halved = FloorDiv(FloorDiv(A, sympy.Integer(3)), minus)
    assert simplify(halved) == halved
    assert simplify(Mod(A, minus)) == Mod(A, minus)


def test_views_of_merged_sizes_undo_each_other() -> None:
    inside = Ranges(((A, sympy.Integer(2)), (J, S), (K, sympy.Integer(768))))
    flat = A * S * 768 + J * 768 + K
    assert simplify(FloorDiv(flat, 768 * S), inside) == A
    assert simplify(Mod(FloorDiv(flat, sympy.Integer(768)), S), inside) == J
    assert simplify(Mod(flat, sympy.Integer(768)), inside) == K


def test_a_split_index_is_one_address_again() -> None:
    inside = Ranges(((M, 2 * S), (N, sympy.Integer(768))))
    address = 768 * S * FloorDiv(M, S) + 768 * Mod(M, S) + N
    assert simplify(address, inside) == 768 * M + N
    assert simplify(64 * FloorDiv(N, sympy.Integer(64)) + Mod(N, sympy.Integer(64)), inside) == N


def test_twelve_dimensions_are_split_and_merged() -> None:
    """Work is bounded: a long sum of products does not explode."""
    variables = [symbol(f"v{k}") for k in range(12)]
    inside = Ranges(tuple((v, sympy.Integer(k + 2)) for k, v in enumerate(variables)))
    sizes = [k + 2 for k in range(12)]
    flat = sum(v * math.prod(sizes[k + 1 :]) for k, v in enumerate(variables))
    for k, v in enumerate(variables):
        part = FloorDiv(flat, sympy.Integer(math.prod(sizes[k + 1 :])))
        assert simplify(part if k == 0 else Mod(part, sympy.Integer(sizes[k])), inside) == v


@pytest.mark.parametrize(
    "shape",
    [
        lambda x, y, a, b: Mod(Mod(x, a) + y, b),
        lambda x, y, a, b: Mod(a * Mod(x, a) + y, b),
        lambda x, y, a, b: Mod(x * a + y, b),
        lambda x, y, a, b: FloorDiv(Mod(x, a) + y, b),
        lambda x, y, a, b: FloorDiv(x * a + y, b),
        lambda x, y, a, b: FloorDiv(FloorDiv(x + y, a), b),
        lambda x, y, a, b: Mod(FloorDiv(x + y, a), b),
        lambda x, y, a, b: FloorDiv(Mod(x + y, a), b),
        lambda x, y, a, b: b * FloorDiv(x + y, a) + Mod(x + y, b),
    ],
    ids=range(9),
)
def test_digits_of_sums_keep_their_values_whichever_number_divides_the_other(shape: Any) -> None:
    inside = Ranges(((A, sympy.Integer(13)), (J, sympy.Integer(9))), ((S.name, (1, 1)),))
    for a, b in product(map(sympy.Integer, (2, 3, 4, 6, 8, 12)), repeat=2):
        expr = shape(A, J, a, b)
        simple = simplify(expr, inside)
        assert all(before == after for before, after in values(inside, expr, simple)), (a, b)
