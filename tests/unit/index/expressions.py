"""Random index expressions, and every point at which a fact about them must hold."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import sympy
from hypothesis import strategies as st

from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv, Mod, evaluate, symbol
from scheduler.ir.index.ranges import Ranges

S = symbol("s0")
A, J, K = symbol("i0"), symbol("i1"), symbol("i2")
SIZES = ((S.name, (0, 5)),)

_leaves = st.sampled_from([A, J, K, S]) | st.integers(-6, 9).map(sympy.Integer)
_divisors = st.sampled_from([S, 2 * S, S + 1, 3 * S, S - 2, A + 1, -S]) | (
    st.integers(-4, 8).filter(bool).map(sympy.Integer)
)


def grown(
    inner: st.SearchStrategy[Expr], divisors: st.SearchStrategy[Expr]
) -> st.SearchStrategy[Expr]:
    """Expressions of one function more, over ``inner``."""
    pairs = st.tuples(inner, inner)
    divided = st.tuples(inner, divisors)
    return (
        pairs.map(lambda p: p[0] + p[1])
        | pairs.map(lambda p: p[0] - p[1])
        | pairs.map(lambda p: sympy.Max(*p))
        | pairs.map(lambda p: sympy.Min(*p))
        | divided.map(lambda p: p[0] * p[1])
        | divided.map(lambda p: FloorDiv(*p))
        | divided.map(lambda p: Mod(*p))
    )


expressions = st.recursive(_leaves, lambda inner: grown(inner, _divisors), max_leaves=7)

#: Loops over i0, i1 and i2, of sizes that depend on s0 in all the ways that models have.
ranges = st.builds(
    lambda first, middle, last: Ranges(((A, first), (J, middle), (K, last)), SIZES),
    st.integers(1, 3).map(sympy.Integer),
    st.sampled_from([S, S + 2, sympy.Integer(4)]),
    st.sampled_from([2 * S, FloorDiv(S, sympy.Integer(2)), S - 2, sympy.Integer(2)]),
)


def points(inside: Ranges) -> Iterator[dict[str, int]]:
    """Every point of the loops, at every size that the ranges allow."""
    low, high = inside.intervals[S.name]
    for size in range(int(low), int(high) + 1):
        bindings = {S.name: size}
        steps = [range(evaluate(extent, bindings)) for _, extent in inside.loops]
        for point in itertools.product(*steps):
            names = (variable.name for variable, _ in inside.loops)
            yield {**bindings, **dict(zip(names, point, strict=True))}


def values(inside: Ranges, *exprs: Expr) -> Iterator[tuple[int, ...]]:
    """The values of expressions at every point at which nothing is divided by 0."""
    for point in points(inside):
        try:
            found = tuple(evaluate(expr, point) for expr in exprs)
        except ZeroDivisionError:
            continue
        yield found
