"""Affine form of an index: c0 * x0 + c1 * x1 + … + rest."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index import polynomial as poly
from scheduler.ir.index.facts import is_equal
from scheduler.ir.index.polynomial import Poly

_ZERO = sympy.Integer(0)
_ONE = sympy.Integer(1)


@dataclass(frozen=True)
class Affine:
    """An affine form. ``coefficients`` are not 0 and contain no variables. ``rest`` contains no
    linear term; ``nonlinear`` are the variables that it contains in other terms."""

    coefficients: Mapping[sympy.Symbol, Expr]
    rest: Expr
    nonlinear: frozenset[sympy.Symbol] = frozenset()

    def at(self, variable: sympy.Symbol) -> Expr:
        """Return the coefficient of a variable, 0 if it does not occur."""
        return self.coefficients.get(variable, _ZERO)

    def step(self, variable: sympy.Symbol) -> Expr | None:
        """Return the stride of ``variable``; None if it is not constant."""
        return None if variable in self.nonlinear else self.at(variable)

    def can_merge(self, outer: sympy.Symbol, inner: sympy.Symbol, size: Expr) -> bool:
        """Whether a step of ``outer`` equals ``size`` steps of ``inner``, so that both can be
        merged into one variable."""
        return is_equal(self.at(outer), self.at(inner) * size)

    def merge(self, outer: sympy.Symbol) -> Affine:
        """Return the form with ``outer`` merged into the axis inside it."""
        coefficients = {var: c for var, c in self.coefficients.items() if var != outer}
        return Affine(coefficients, self.rest, self.nonlinear)

    def expr(self) -> Expr:
        return sympy.Add(*(var * c for var, c in self.coefficients.items()), self.rest)


def affine(expr: Expr, variables: Collection[sympy.Symbol]) -> Affine | None:
    """Return the expression as an affine form, or None; it is not simplified first."""
    parts = affine_parts(expr, variables)
    return None if parts.nonlinear else parts


def _depends_on(part: Expr, variables: Collection[sympy.Symbol]) -> bool:
    if part.is_Symbol:
        return part in variables
    return not part.free_symbols.isdisjoint(variables)


def affine_parts(expr: Expr, variables: Collection[sympy.Symbol]) -> Affine:
    """Split an expression into its affine terms and the rest."""
    if expr.is_Symbol and expr in variables:
        return Affine({expr: _ONE}, _ZERO)
    if expr.is_Integer or expr.free_symbols.isdisjoint(variables):
        return Affine({}, expr)
    coefficients: dict[sympy.Symbol, Poly] = {}
    rest: Poly = {}
    nonlinear: set[sympy.Symbol] = set()
    for monomial, factor in poly.expand(expr).items():
        inside = [part for part in monomial if _depends_on(part, variables)]
        if len(inside) == 1 and inside[0].is_Symbol:
            others = poly.divide_monomial(monomial, (inside[0],))
            assert others is not None
            coefficients.setdefault(inside[0], {})[others] = factor
            continue
        rest[monomial] = factor
        for part in inside:
            nonlinear |= part.free_symbols.intersection(variables)
    linear = {variable: poly.to_expr(c) for variable, c in coefficients.items()}
    return Affine(linear, poly.to_expr(rest), frozenset(nonlinear))
