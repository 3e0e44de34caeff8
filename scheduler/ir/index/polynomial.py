"""Index expressions as polynomials with integer coefficients, used by the simplifier.

sympy's expansion takes a hundred microseconds or more per expression; a dictionary from
monomial to coefficient takes a few. Atoms are symbols and our ``FloorDiv``, ``Mod``, and sympy's
``Max`` and ``Min`` over simplified parts.

Products of sums and powers of powers grow without bound, so each polynomial has at most
``limits.MAX_TERMS`` terms of at most ``MAX_DEGREE`` factors; others raise ``TooLargeError``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

import sympy

from scheduler.fuel import LimitError, spend_fuel
from scheduler.ir.graph import Expr
from scheduler.limits import MAX_COEFFICIENT_BITS, MAX_DEGREE, MAX_TERMS

#: Sorted atoms of one product, powers as repetition; () is the constant.
Monomial: TypeAlias = tuple[Expr, ...]
Poly: TypeAlias = dict[Monomial, int]

_MAX_COEFFICIENT = 1 << MAX_COEFFICIENT_BITS
_CACHE_SIZE = 65_536  # atoms' texts
_TERM_FUEL = 10  # steps of building one term


class TooLargeError(LimitError):
    """An expanded expression exceeds the limits of index expressions."""


@lru_cache(maxsize=_CACHE_SIZE)
def atom_key(atom: Expr) -> str:
    """Return a sort key that is the same in every process (sympy's hashes are not)."""
    if atom.is_Symbol:
        return str(atom.name)
    text = str(atom)
    spend_fuel(len(text))
    return text


def constant(value: int) -> Poly:
    return {(): value} if value else {}


def atom(expr: Expr) -> Poly:
    return {(expr,): 1}


def add(a: Poly, b: Poly, factor: int = 1) -> Poly:
    """``a + factor * b``."""
    spend_fuel(len(a) + len(b))
    result = dict(a)
    for monomial, coefficient in b.items():
        _accumulate(result, monomial, factor * coefficient)
    return _check_size(result)


def multiply_monomials(a: Monomial, b: Monomial) -> Monomial:
    """Return the product of two monomials."""
    if not a or not b:
        return a or b
    if len(a) + len(b) > MAX_DEGREE:
        raise TooLargeError(f"an expression has terms of more than {MAX_DEGREE} factors")
    return tuple(sorted(a + b, key=atom_key))


def multiply(a: Poly, b: Poly) -> Poly:
    """``a * b``."""
    spend_fuel(len(a) * len(b))
    result: Poly = {}
    for left, x in a.items():
        for right, y in b.items():
            _accumulate(result, multiply_monomials(left, right), x * y)
        _check_size(result)
    return result


def _check_size(poly: Poly) -> Poly:
    """Return the polynomial. Raises ``TooLargeError`` if it has too many terms."""
    if len(poly) > MAX_TERMS:
        raise TooLargeError(f"an expression has more than {MAX_TERMS} terms")
    return poly


def _accumulate(poly: Poly, monomial: Monomial, coefficient: int) -> None:
    """Add one term in place; terms with coefficient 0 are removed."""
    total = poly.get(monomial, 0) + coefficient
    if not -_MAX_COEFFICIENT < total < _MAX_COEFFICIENT:
        raise TooLargeError(f"an expression has numbers of over {MAX_COEFFICIENT_BITS} bits")
    if total:
        poly[monomial] = total
    else:
        poly.pop(monomial, None)


def divide_monomial(a: Monomial, b: Monomial) -> Monomial | None:
    """Return ``a / b`` if that is a monomial, else None."""
    if not b:
        return a
    rest = list(a)
    for part in b:
        if part not in rest:
            return None
        rest.remove(part)
    return tuple(rest)


def common_monomial(a: Monomial, b: Monomial) -> Monomial:
    """Return the greatest common monomial."""
    rest, common = list(b), []
    for part in a:
        if part in rest:
            rest.remove(part)
            common.append(part)
    return tuple(common)


def divide(p: Poly, q: Poly) -> tuple[Poly, Poly]:
    """Return ``quotient, rest`` with ``p = quotient * q + rest``, from exact terms only.

    For a divisor of one term these are the terms that it divides; otherwise this is long division
    by the leading term.
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


@lru_cache(maxsize=_CACHE_SIZE)
def degree(expr: Expr) -> int:
    """Return the maximum number of sizes multiplied in the value, also inside divisions. It bounds
    the number of digits of the value as a multiple of a size's digits."""
    if not expr.args:
        return int(bool(expr.is_Symbol))
    below = [degree(arg) for arg in expr.args]
    if expr.is_Mul:
        return sum(below)
    if expr.is_Pow and expr.args[1].is_Integer:
        return below[0] * max(int(expr.args[1]), 0)
    return max(below)


def check_bounded(expr: Expr) -> None:
    """Raise ``TooLargeError`` if the expanded expression, or an expanded argument of one of its
    functions, exceeds the limits."""
    if degree(expr) > MAX_DEGREE:
        raise TooLargeError(f"an expression has terms of more than {MAX_DEGREE} factors")
    for monomial in expand(expr):
        for part in dict.fromkeys(monomial):
            for arg in part.args:
                check_bounded(arg)


@lru_cache(maxsize=16384)
def expand(expr: Expr) -> Poly:
    """Expand the expression without simplification: every function in it is an atom."""
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


def to_expr(p: Poly) -> Expr:
    """Convert the polynomial to a sympy expression."""
    spend_fuel(_TERM_FUEL * len(p))
    if not p or (len(p) == 1 and () in p):
        return sympy.Integer(p.get((), 0))
    terms = [
        sympy.Mul(sympy.Integer(coefficient), *monomial) if monomial else sympy.Integer(coefficient)
        for monomial, coefficient in p.items()
    ]
    if len(terms) == 1:
        return terms[0]
    return sympy.Add(*terms)
