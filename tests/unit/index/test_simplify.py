"""The index simplifier: equal at every point of the loops, and simple where it matters."""

from __future__ import annotations

import math

import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv, Mod, evaluate, symbol
from scheduler.ir.index.simplify import is_less, linear, simplify

S = symbol("s0")
A, J, K = symbol("i0"), symbol("i1"), symbol("i2")
M, N = symbol("m0"), symbol("n0")

_leaves = st.sampled_from([A, J, K, S]) | st.integers(0, 9).map(sympy.Integer)
_divisors = st.sampled_from([S, 2 * S, S + 1, 3 * S]) | st.integers(1, 8).map(sympy.Integer)


def _grown(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    pairs = st.tuples(inner, inner)
    divided = st.tuples(inner, _divisors)
    return (
        pairs.map(lambda p: p[0] + p[1])
        | pairs.map(lambda p: p[0] - p[1])
        | divided.map(lambda p: p[0] * p[1])
        | divided.map(lambda p: FloorDiv(*p))
        | divided.map(lambda p: Mod(*p))
    )


_expressions = st.recursive(_leaves, _grown, max_leaves=8)


@settings(max_examples=200, deadline=None)
@given(_expressions, st.integers(1, 6), st.sampled_from([S, 2 * S, 8, 1]), st.data())
def test_simplified_expressions_are_equal_at_every_point(
    expr: Expr, first: int, last: Expr, data: st.DataObject
) -> None:
    ranges = {A: sympy.Integer(first), J: S, K: sympy.sympify(last)}
    simple = simplify(expr, ranges)
    size = data.draw(st.integers(1, 7))
    point = {"s0": size}
    for variable, extent in ranges.items():
        steps = evaluate(extent, {"s0": size})
        point[variable.name] = data.draw(st.integers(0, steps - 1))
    assert evaluate(simple, point) == evaluate(expr, point)


@settings(max_examples=100, deadline=None)
@given(_expressions, _expressions, st.data())
def test_what_is_said_to_be_less_is_less(a: Expr, b: Expr, data: st.DataObject) -> None:
    ranges = {A: sympy.Integer(3), J: S, K: 2 * S}
    if not is_less(a, b, ranges):
        return
    size = data.draw(st.integers(1, 7))
    point = {"s0": size}
    for variable, extent in ranges.items():
        steps = evaluate(extent, {"s0": size})
        point[variable.name] = data.draw(st.integers(0, steps - 1))
    assert evaluate(a, point) < evaluate(b, point)


def test_views_of_merged_sizes_undo_each_other() -> None:
    ranges = {A: sympy.Integer(2), J: S, K: sympy.Integer(768)}
    flat = A * S * 768 + J * 768 + K
    assert simplify(FloorDiv(flat, 768 * S), ranges) == A
    assert simplify(Mod(FloorDiv(flat, sympy.Integer(768)), S), ranges) == J
    assert simplify(Mod(flat, sympy.Integer(768)), ranges) == K


def test_a_split_index_is_one_address_again() -> None:
    ranges = {M: 2 * S, N: sympy.Integer(768)}
    address = 768 * S * FloorDiv(M, S) + 768 * Mod(M, S) + N
    assert simplify(address, ranges) == 768 * M + N
    assert simplify(64 * FloorDiv(N, sympy.Integer(64)) + Mod(N, sympy.Integer(64)), ranges) == N


def test_linear_gives_the_steps_and_the_offset() -> None:
    found = linear(768 * S * A + 3 * J + S, (A, J))
    assert found == ((768 * S, sympy.Integer(3)), S)
    assert linear(FloorDiv(A, S), (A,)) is None
    assert linear(A * J, (A, J)) is None


def test_twelve_dimensions_are_taken_apart_and_put_together() -> None:
    """Work is bounded: a long sum of products does not explode."""
    variables = [symbol(f"v{k}") for k in range(12)]
    ranges = {v: sympy.Integer(k + 2) for k, v in enumerate(variables)}
    sizes = [k + 2 for k in range(12)]
    flat = sum(v * math.prod(sizes[k + 1 :]) for k, v in enumerate(variables))
    for k, v in enumerate(variables):
        part = FloorDiv(flat, sympy.Integer(math.prod(sizes[k + 1 :])))
        assert simplify(part if k == 0 else Mod(part, sympy.Integer(sizes[k])), ranges) == v
