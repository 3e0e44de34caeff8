"""Index expressions as polynomials with integer coefficients: what the simplifier works on.

sympy's own expansion costs a hundred microseconds and more an expression; a dictionary from
monomial to coefficient costs a few. Atoms are symbols and our ``FloorDiv``, ``Mod``, and sympy's
``Max`` and ``Min`` over simplified parts.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TypeAlias

import sympy

from scheduler.ir.graph import Expr

#: Atoms of one product, sorted, a power as repetition; () is the constant.
Monomial: TypeAlias = tuple[Expr, ...]
Poly: TypeAlias = dict[Monomial, int]


@cache
def atom_key(atom: Expr) -> str:
    """A sort key that is the same in every process (sympy's hashes are not)."""
    return atom.name if atom.is_Symbol else str(atom)


def constant(value: int) -> Poly:
    return {(): value} if value else {}


def atom(expr: Expr) -> Poly:
    return {(expr,): 1}


def add(a: Poly, b: Poly, factor: int = 1) -> Poly:
    """``a + factor * b``."""
    result = dict(a)
    for monomial, coefficient in b.items():
        _accumulate(result, monomial, factor * coefficient)
    return result


def times(a: Monomial, b: Monomial) -> Monomial:
    """The product of two monomials."""
    if not a or not b:
        return a or b
    return tuple(sorted(a + b, key=atom_key))


def multiply(a: Poly, b: Poly) -> Poly:
    """``a * b``."""
    result: Poly = {}
    for left, x in a.items():
        for right, y in b.items():
            _accumulate(result, times(left, right), x * y)
    return result


def _accumulate(poly: Poly, monomial: Monomial, coefficient: int) -> None:
    """Add one term in place; no coefficient is 0."""
    total = poly.get(monomial, 0) + coefficient
    if total:
        poly[monomial] = total
    else:
        poly.pop(monomial, None)


def divide_monomial(a: Monomial, b: Monomial) -> Monomial | None:
    """``a / b`` where that is a monomial."""
    if not b:
        return a
    rest = list(a)
    for part in b:
        if part not in rest:
            return None
        rest.remove(part)
    return tuple(rest)


def common_monomial(a: Monomial, b: Monomial) -> Monomial:
    """The greatest monomial that divides both."""
    rest, common = list(b), []
    for part in a:
        if part in rest:
            rest.remove(part)
            common.append(part)
    return tuple(common)


def divide(p: Poly, q: Poly) -> tuple[Poly, Poly]:
    """``quotient, rest`` with ``p = quotient * q + rest``, taking exact terms out only.

    For a divisor of one term these are the terms that it divides; for a longer one, long
    division by its leading term.
    """
    lead = max(q, key=lambda m: (len(m), tuple(map(atom_key, m))))
    factor = q[lead]
    quotient: Poly = {}
    rest = dict(p)
    for monomial in sorted(p, key=len, reverse=True):
        coefficient = rest.get(monomial, 0)
        part = divide_monomial(monomial, lead)
        if not coefficient or part is None or coefficient % factor:
            continue
        term = {part: coefficient // factor}
        quotient = add(quotient, term)
        rest = add(rest, multiply(term, q), -1)
    return quotient, rest


@lru_cache(maxsize=16384)
def expand(expr: Expr) -> Poly:
    """The expression multiplied out and nothing else: every function in it is an atom."""
    if expr.is_Symbol:
        return atom(expr)
    if expr.is_Integer:
        return constant(int(expr))
    if expr.is_Add:
        result: Poly = {}
        for arg in expr.args:
            result = add(result, expand(arg))
        return result
    if expr.is_Mul:
        result = constant(1)
        for arg in expr.args:
            result = multiply(result, expand(arg))
        return result
    if expr.is_Pow and expr.args[1].is_Integer and int(expr.args[1]) >= 0:
        base, result = expand(expr.args[0]), constant(1)
        for _ in range(int(expr.args[1])):
            result = multiply(result, base)
        return result
    return atom(expr)


def expression(p: Poly) -> Expr:
    """The polynomial as a sympy expression."""
    if not p or (len(p) == 1 and () in p):
        return sympy.Integer(p.get((), 0))
    terms = [
        sympy.Mul(sympy.Integer(coefficient), *monomial) if monomial else sympy.Integer(coefficient)
        for monomial, coefficient in p.items()
    ]
    if len(terms) == 1:
        return terms[0]
    return sympy.Add(*terms)
