"""Simplification of index expressions over known ranges of symbols.

Rules, for exact divisors c where stated, and nonnegative divisors (there is no division by 0):
  (c*a + r) // c = a + r // c          (c*a + r) % c = r % c
  (g*a + r) // (g*c) = a // c          (g*a + r) % (g*c) = g*(a % c) + r      for 0 <= r < g
  r // c = 0, r % c = r                                                       for 0 <= r < c
  (x // a) // b = x // (a*b)           (x % (a*b)) // a = (x // a) % b
  (x % (a*b)) % a = x % a              c*(x // c) + x % c = x
"""

from __future__ import annotations

import math
from functools import lru_cache

import sympy

from scheduler.fuel import spend_fuel
from scheduler.ir.graph import Expr
from scheduler.ir.index import polynomial as poly
from scheduler.ir.index.bounds import bounds
from scheduler.ir.index.functions import FloorDiv, Mod
from scheduler.ir.index.polynomial import Poly
from scheduler.ir.index.ranges import ANY_SIZES, Ranges

_CACHE_SIZE = 16_384  # maximum cached expressions per simplifier


def simplify(expr: Expr, ranges: Ranges = ANY_SIZES) -> Expr:
    """Return the normal form of ``expr``, equal to it at every point of ``ranges``."""
    if expr.is_Integer:
        return expr
    if expr.is_Symbol:
        return sympy.Integer(0) if ranges.extents.get(expr) == 1 else expr
    return simplifier(ranges).simplify(expr)


@lru_cache(maxsize=4096)
def product(sizes: tuple[Expr, ...]) -> Expr:
    """Return the product of sizes in normal form; 1 for none."""
    return simplify(sympy.Mul(*sizes)) if sizes else sympy.Integer(1)


@lru_cache(maxsize=4096)
def simplifier(ranges: Ranges) -> Simplifier:
    """Return the simplifier for these ranges, which caches results."""
    return Simplifier(ranges)


class Simplifier:
    """Simplifies expressions over one set of points."""

    def __init__(self, ranges: Ranges) -> None:
        self._ranges = ranges
        self._loops = ranges.extents
        self._polys: dict[Expr, Poly] = {}
        self._done: dict[Expr, Expr] = {}
        self._leasts: dict[Expr, int | None] = {}

    def simplify(self, expr: Expr) -> Expr:
        """Return the normal form of ``expr``."""
        known = self._done.get(expr)
        if known is None:
            known = self._done[expr] = poly.to_expr(self.to_poly(expr))
        return known

    def is_nonnegative(self, expr: Expr) -> bool:
        """Whether ``expr >= 0`` is provable."""
        return self._nonnegative(self.to_poly(expr))

    def to_poly(self, expr: Expr) -> Poly:
        """Return the normal form as a polynomial."""
        known = self._polys.get(expr)
        if known is None:
            spend_fuel()
            if len(self._polys) >= _CACHE_SIZE:
                self._forget()
            known = self._polys[expr] = self._convert(expr)
        return known

    def _forget(self) -> None:
        """Clear the caches, which hold expressions of many graphs."""
        for seen in (self._polys, self._done, self._leasts):
            seen.clear()

    def _convert(self, expr: Expr) -> Poly:
        if expr.is_Integer:
            return poly.constant(int(expr))
        if expr.is_Symbol:
            return {} if self._loops.get(expr) == 1 else poly.atom(expr)
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
        """Simplify Max and Min; return one side if it provably wins."""
        args = [self.simplify(arg) for arg in expr.args]
        if isinstance(expr, sympy.Max | sympy.Min) and len(args) == 2:
            a, b = args if isinstance(expr, sympy.Min) else reversed(args)
            difference = poly.add(self.to_poly(b), self.to_poly(a), -1)
            if self._nonnegative(difference):
                return self.to_poly(args[0])
            if self._nonnegative(poly.add({}, difference, -1)):
                return self.to_poly(args[1])
        return poly.atom(expr.func(*args))

    def _floordiv(self, p: Poly, q: Poly) -> Poly:
        if not q or not p or q == {(): 1}:
            return p if q else poly.atom(FloorDiv(poly.to_expr(p), sympy.Integer(0)))
        if not self._nonnegative(q):
            return self._atom(FloorDiv, p, q)
        if self._in_range(p, q):
            return {}
        quotient, rest = poly.divide(p, q)
        if quotient:
            # With a divisor of several terms an exact term may leave a rest that is not simpler;
            # the identity holds for any quotient.
            return poly.add(quotient, self._floordiv(rest, q) if rest else {})
        smaller = self._without_common(p, q)
        if smaller is not None:
            return self._floordiv(smaller[0], smaller[1])
        if set(p) == {()} and p[()] < 0 and self._in_range(poly.add(p, q), q):
            return poly.constant(-1)
        return self._floordiv_of_atom(p, q) or self._atom(FloorDiv, p, q)

    def _floordiv_of_atom(self, p: Poly, q: Poly) -> Poly | None:
        """Simplify (x // a) // b and (x % (a*b)) // a, if p is one such atom."""
        if len(p) != 1:
            return None
        ((monomial, factor),) = p.items()
        if factor != 1 or len(monomial) != 1 or not isinstance(monomial[0], FloorDiv | Mod):
            return None
        x, c = (self.to_poly(arg) for arg in monomial[0].args)
        if isinstance(monomial[0], FloorDiv):
            return self._floordiv(x, poly.multiply(c, q))
        quotient, rest = poly.divide(c, q)
        if not self._nonnegative(c):
            return None
        return self._mod(self._floordiv(x, q), quotient) if not rest else None

    def _mod(self, p: Poly, q: Poly) -> Poly:
        if not p or q == {(): 1}:
            return {}
        if not q:
            return poly.atom(Mod(poly.to_expr(p), sympy.Integer(0)))
        if not self._nonnegative(q):
            return self._atom(Mod, p, q)
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
        """Replace ``x % n`` by ``x`` if n is a multiple of ``q``: they are equal modulo ``q``."""
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
        """Return ``a, c, g, r`` with p = g*a + r, q = g*c, 0 <= r < g; None without such g."""
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
        """Merge ``c*(x // c)`` and ``x % c`` into ``x``."""
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
        result = function(poly.to_expr(p), poly.to_expr(q))
        return poly.constant(int(result)) if result.is_Integer else poly.atom(result)

    def _in_range(self, p: Poly, q: Poly) -> bool:
        """Whether 0 <= p < q is provable."""
        if not self._nonnegative(p):
            return False
        difference = poly.add(poly.add(q, p, -1), poly.constant(-1))
        return self._nonnegative(difference)

    def _nonnegative(self, p: Poly) -> bool:
        """Whether p >= 0 is provable."""
        if not p:
            return True
        if set(p) == {()}:
            return p[()] > 0
        low = self._bound(p, upper=False)
        return low is not None and self._is_nonnegative_size(low)

    def _bound(self, p: Poly, *, upper: bool) -> Poly | None:
        """Return an ``upper`` or lower bound of ``p`` as a polynomial of sizes only."""
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
        """Return a bound of a nonnegative atom; None if it may be negative or is unbounded."""
        size = self._loops.get(part)
        if size is not None:
            return poly.add(self.to_poly(size), poly.constant(-1)) if upper else {}
        if not part.free_symbols.intersection(self._loops):
            return poly.atom(part) if self._least(part) is not None else None
        if isinstance(part, Mod):
            return self._remainder_bound(part, upper=upper)
        if isinstance(part, FloorDiv):
            return self._quotient_bound(part, upper=upper)
        return None

    def _remainder_bound(self, part: Expr, *, upper: bool) -> Poly | None:
        divisor = self.to_poly(part.args[1])
        if not self._nonnegative(divisor):
            return None
        if not upper:
            return {}
        most = self._bound(divisor, upper=True)
        return None if most is None else poly.add(most, poly.constant(-1))

    def _quotient_bound(self, part: Expr, *, upper: bool) -> Poly | None:
        x, c = (self.to_poly(arg) for arg in part.args)
        if part.args[1].free_symbols.intersection(self._loops):
            return None
        if not self._nonnegative(x) or not self._nonnegative(c):
            return None
        bound = self._bound(x, upper=upper)
        return None if bound is None else self._floordiv(bound, c)

    def _is_nonnegative_size(self, p: Poly) -> bool:
        """Whether a polynomial of sizes is provably nonnegative, from the sizes' minima."""
        if any(self._least(part) is None for monomial in p for part in monomial):
            return False
        if all(factor > 0 for factor in p.values()):
            return True
        shifted: Poly = {}
        for monomial, factor in p.items():
            product = poly.constant(factor)
            for part in monomial:
                least = self._least(part)
                assert least is not None
                product = poly.multiply(product, poly.add(poly.atom(part), poly.constant(least)))
            shifted = poly.add(shifted, product)
        return all(factor >= 0 for factor in shifted.values())

    def _least(self, part: Expr) -> int | None:
        """Return the minimum of an atom of sizes; None if it may be negative."""
        if part not in self._leasts:
            low = bounds(part, self._ranges)[0]
            self._leasts[part] = int(low) if low >= 0 else None
        return self._leasts[part]
