"""Simplification of index expressions, knowing how far each loop variable runs.

Loop variables (the keys of ``ranges``) run from 0 to their size, exclusive. Every other symbol is
a size; a divisor is at least 1, and so is a size wherever a loop over it has a body to run.

Rules, with c dividing exactly what it is said to divide:
  (c*a + r) // c = a + r // c          (c*a + r) % c = r % c
  (g*a + r) // (g*c) = a // c          (g*a + r) % (g*c) = g*(a % c) + r      for 0 <= r < g
  r // c = 0, r % c = r                                                       for 0 <= r < c
  (x // a) // b = x // (a*b)           (x % (a*b)) // a = (x // a) % b
  (x % (a*b)) % a = x % a              c*(x // c) + x % c = x
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index import polynomial as poly
from scheduler.ir.index.functions import FloorDiv, Mod
from scheduler.ir.index.polynomial import Poly

#: Size of each loop variable.
Ranges: TypeAlias = Mapping[sympy.Symbol, Expr]


def simplify(expr: Expr, ranges: Ranges) -> Expr:
    """An expression equal to ``expr`` at every point of the loops, in normal form."""
    if expr.is_Integer:
        return expr
    if expr.is_Symbol:
        return sympy.Integer(0) if ranges.get(expr) == 1 else expr
    return simplifier(tuple(ranges.items())).simplify(expr)


def is_less(a: Expr, b: Expr, ranges: Ranges) -> bool:
    """Whether ``a < b`` can be shown for every point; False says nothing."""
    return simplifier(tuple(ranges.items())).is_less(a, b)


def is_nonnegative(expr: Expr, ranges: Ranges) -> bool:
    """Whether ``expr >= 0`` can be shown for every point; False says nothing."""
    return simplifier(tuple(ranges.items())).is_less(sympy.Integer(-1), expr)


def linear(expr: Expr, variables: tuple[sympy.Symbol, ...]) -> tuple[tuple[Expr, ...], Expr] | None:
    """``coefficients, offset`` with ``expr = sum of coefficient * variable + offset``.

    None where the expression, multiplied out, is not linear in them.
    """
    if not expr.free_symbols.intersection(variables):
        return (sympy.Integer(0),) * len(variables), expr
    parts = poly.expand(expr)
    coefficients: list[Poly] = [{} for _ in variables]
    offset: Poly = {}
    for monomial, factor in parts.items():
        inside = [atom for atom in monomial if atom.free_symbols.intersection(variables)]
        if not inside:
            offset[monomial] = factor
        elif len(inside) == 1 and inside[0] in variables:
            rest = poly.divide_monomial(monomial, (inside[0],))
            assert rest is not None
            coefficients[variables.index(inside[0])][rest] = factor
        else:
            return None
    return tuple(poly.expression(c) for c in coefficients), poly.expression(offset)


@lru_cache(maxsize=4096)
def simplifier(ranges: tuple[tuple[sympy.Symbol, Expr], ...]) -> Simplifier:
    """The simplifier for these loops; it remembers what it has seen."""
    return Simplifier(dict(ranges))


class Simplifier:
    """Simplifies expressions over one set of loops."""

    def __init__(self, ranges: Ranges) -> None:
        self._ranges = ranges
        self._polys: dict[Expr, Poly] = {}
        self._done: dict[Expr, Expr] = {}

    def simplify(self, expr: Expr) -> Expr:
        """The normal form of ``expr``."""
        known = self._done.get(expr)
        if known is None:
            known = self._done[expr] = poly.expression(self.to_poly(expr))
        return known

    def is_less(self, a: Expr, b: Expr) -> bool:
        """Whether ``a < b`` can be shown."""
        difference = poly.add(poly.add(self.to_poly(b), self.to_poly(a), -1), poly.constant(-1))
        return self._nonnegative(difference)

    def to_poly(self, expr: Expr) -> Poly:
        """The normal form as a polynomial."""
        known = self._polys.get(expr)
        if known is None:
            known = self._polys[expr] = self._convert(expr)
        return known

    def _convert(self, expr: Expr) -> Poly:
        if expr.is_Integer:
            return poly.constant(int(expr))
        if expr.is_Symbol:
            return {} if self._ranges.get(expr) == 1 else poly.atom(expr)
        if isinstance(expr, sympy.Add):
            result: Poly = {}
            for arg in expr.args:
                result = poly.add(result, self.to_poly(arg))
            return self._merge(result)
        if isinstance(expr, sympy.Mul):
            result = poly.constant(1)
            for arg in expr.args:
                result = poly.multiply(result, self.to_poly(arg))
            return self._merge(result)
        if isinstance(expr, sympy.Pow) and expr.args[1].is_Integer and int(expr.args[1]) >= 0:
            base, result = self.to_poly(expr.args[0]), poly.constant(1)
            for _ in range(int(expr.args[1])):
                result = poly.multiply(result, base)
            return result
        if isinstance(expr, FloorDiv):
            return self._floordiv(self.to_poly(expr.args[0]), self.to_poly(expr.args[1]))
        if isinstance(expr, Mod):
            return self._mod(self.to_poly(expr.args[0]), self.to_poly(expr.args[1]))
        return self._extreme(expr)

    def _extreme(self, expr: Expr) -> Poly:
        """Max and Min; where one side is known to win, that side."""
        args = [self.simplify(arg) for arg in expr.args]
        if isinstance(expr, sympy.Max | sympy.Min) and len(args) == 2:
            a, b = args if isinstance(expr, sympy.Min) else reversed(args)
            one = sympy.Integer(1)
            if self.is_less(a, b + one):
                return self.to_poly(args[0])
            if self.is_less(b, a + one):
                return self.to_poly(args[1])
        return poly.atom(expr.func(*args))

    def _floordiv(self, p: Poly, q: Poly) -> Poly:
        if not q or not p or q == {(): 1}:
            return p if q else poly.atom(FloorDiv(poly.expression(p), sympy.Integer(0)))
        if self._in_range(p, q):
            return {}
        quotient, rest = poly.divide(p, q)
        if quotient:
            # With a divisor of several terms an exact term may leave a rest that is no simpler;
            # the identity holds for any quotient.
            return poly.add(quotient, self._floordiv(rest, q) if rest else {})
        smaller = self._without_common(p, q)
        if smaller is not None:
            return self._floordiv(smaller[0], smaller[1])
        if set(p) == {()} and p[()] < 0 and self._in_range(poly.add(p, q), q):
            return poly.constant(-1)
        return self._floordiv_of_atom(p, q) or self._atom(FloorDiv, p, q)

    def _floordiv_of_atom(self, p: Poly, q: Poly) -> Poly | None:
        """(x // a) // b and (x % (a*b)) // a, where p is one such atom."""
        if len(p) != 1:
            return None
        ((monomial, factor),) = p.items()
        if factor != 1 or len(monomial) != 1 or not isinstance(monomial[0], FloorDiv | Mod):
            return None
        x, c = (self.to_poly(arg) for arg in monomial[0].args)
        if isinstance(monomial[0], FloorDiv):
            return self._floordiv(x, poly.multiply(c, q))
        quotient, rest = poly.divide(c, q)
        return self._mod(self._floordiv(x, q), quotient) if not rest else None

    def _mod(self, p: Poly, q: Poly) -> Poly:
        if not p or q == {(): 1}:
            return {}
        if not q:
            return poly.atom(Mod(poly.expression(p), sympy.Integer(0)))
        if self._in_range(p, q):
            return p
        quotient, rest = poly.divide(p, q)
        if quotient:
            return self._mod(rest, q)
        opened = self._open_mods(p, q)
        if opened != p:
            return self._mod(opened, q)
        smaller = self._without_common(p, q)
        if smaller is not None:
            a, c, g, r = smaller
            return poly.add(poly.multiply(g, self._mod(a, c)), r)
        return self._atom(Mod, p, q)

    def _open_mods(self, p: Poly, q: Poly) -> Poly:
        """``x`` for each ``x % n`` whose n is a multiple of ``q``: the same modulo ``q``."""
        result = p
        for monomial, factor in p.items():
            for part in monomial:
                if not isinstance(part, Mod):
                    continue
                if poly.divide(self.to_poly(part.args[1]), q)[1]:
                    continue
                rest = poly.divide_monomial(monomial, (part,))
                assert rest is not None
                result = poly.add(result, {monomial: factor}, -1)
                return poly.add(result, poly.multiply({rest: factor}, self.to_poly(part.args[0])))
        return result

    def _without_common(self, p: Poly, q: Poly) -> tuple[Poly, Poly, Poly, Poly] | None:
        """``a, c, g, r`` with p = g*a + r, q = g*c, 0 <= r < g; None where there is no such g."""
        if len(q) != 1:
            return None
        ((lead, factor),) = q.items()
        seen = set()
        for monomial, coefficient in p.items():
            g = (math.gcd(coefficient, factor), poly.common_monomial(monomial, lead))
            if g == (1, ()) or g in seen:
                continue
            seen.add(g)
            divisor = {g[1]: g[0]}
            a, r = poly.divide(p, divisor)
            if not r or self._in_range(r, divisor):
                return a, poly.divide(q, divisor)[0], divisor, r
        return None

    def _merge(self, p: Poly) -> Poly:
        """Put ``c*(x // c)`` and ``x % c`` together again."""
        for monomial, factor in p.items():
            for part in monomial:
                if not isinstance(part, Mod):
                    continue
                rest = poly.divide_monomial(monomial, (part,))
                assert rest is not None
                x, c = (self.to_poly(arg) for arg in part.args)
                front = {rest: factor}
                whole = poly.multiply(poly.multiply(front, c), self._floordiv(x, c))
                if whole and all(p.get(m) == f for m, f in whole.items()):
                    merged = poly.add(poly.add(p, whole, -1), {monomial: factor}, -1)
                    return self._merge(poly.add(merged, poly.multiply(front, x)))
        return p

    def _atom(self, function: type[Expr], p: Poly, q: Poly) -> Poly:
        made = function(poly.expression(p), poly.expression(q))
        return poly.constant(int(made)) if made.is_Integer else poly.atom(made)

    def _in_range(self, p: Poly, q: Poly) -> bool:
        """Whether 0 <= p < q can be shown."""
        low = self._bound(p, upper=False)
        if low is None or not _always_nonnegative(low):
            return False
        difference = poly.add(poly.add(q, p, -1), poly.constant(-1))
        return self._nonnegative(difference)

    def _nonnegative(self, p: Poly) -> bool:
        low = self._bound(p, upper=False)
        return low is not None and _always_nonnegative(low)

    def _bound(self, p: Poly, *, upper: bool) -> Poly | None:
        """A polynomial of sizes only that is never below (``upper``) or above ``p``."""
        result: Poly = {}
        for monomial, factor in p.items():
            product = poly.constant(factor)
            for part in monomial:
                bound = self._atom_bound(part, upper=upper == (factor > 0))
                if bound is None:
                    return None
                product = poly.multiply(product, bound)
            result = poly.add(result, product)
        return result

    def _atom_bound(self, part: Expr, *, upper: bool) -> Poly | None:
        """A bound of an atom that is not negative; None where it may be, or has no bound."""
        if part.is_Symbol:
            size = self._ranges.get(part)
            if size is None:
                return poly.atom(part)
            return poly.add(self.to_poly(size), poly.constant(-1)) if upper else {}
        if isinstance(part, Mod):
            return poly.add(self.to_poly(part.args[1]), poly.constant(-1)) if upper else {}
        if isinstance(part, FloorDiv):
            x, c = (self.to_poly(arg) for arg in part.args)
            if not self._nonnegative(x):
                return None
            if not part.free_symbols.intersection(self._ranges):
                return poly.atom(part)
            bound = self._bound(x, upper=upper)
            return None if bound is None else self._floordiv(bound, c)
        if part.free_symbols.intersection(self._ranges):
            return None
        return poly.atom(part) if part.is_nonnegative else None


def _always_nonnegative(p: Poly) -> bool:
    """Whether a polynomial of sizes is never negative, each size being at least 1."""
    if all(factor >= 0 for factor in p.values()):
        return True
    one = poly.constant(1)
    shifted: Poly = {}
    for monomial, factor in p.items():
        product = poly.constant(factor)
        for part in monomial:
            product = poly.multiply(product, poly.add(poly.atom(part), one))
        shifted = poly.add(shifted, product)
    return all(factor >= 0 for factor in shifted.values())
