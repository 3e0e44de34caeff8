"""An access as a sum over loop variables: offset = c0 * x0 + c1 * x1 + … + rest."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import sympy

from scheduler.ir.graph import Expr

_ZERO = sympy.Integer(0)
_ONE = sympy.Integer(1)


@dataclass(frozen=True)
class Affine:
    """``coefficients`` are free of loop variables; ``rest`` holds them only nonlinearly."""

    coefficients: Mapping[sympy.Symbol, Expr]
    rest: Expr
    nonlinear: frozenset[sympy.Symbol]

    def coefficient(self, variable: sympy.Symbol) -> Expr | None:
        """How far one step of ``variable`` moves; None where that is not the same everywhere."""
        if variable in self.nonlinear:
            return None
        return self.coefficients.get(variable, _ZERO)

    def merged(self, outer: sympy.Symbol) -> Affine:
        """With ``outer`` gone into the axis inside it."""
        kept = {var: c for var, c in self.coefficients.items() if var != outer}
        return Affine(kept, self.rest, self.nonlinear)

    def expr(self) -> Expr:
        """The offset itself."""
        return sympy.Add(*(var * c for var, c in self.coefficients.items()), self.rest)


def affine(
    index: tuple[Expr, ...], stride: tuple[Expr, ...], variables: Collection[sympy.Symbol]
) -> Affine:
    """The offset of ``index`` (one expression a dimension) in a buffer with these strides."""
    coefficients: dict[sympy.Symbol, Expr] = {}
    rest: list[Expr] = []
    for position, step in zip(index, stride, strict=True):
        expanded = position.expand() if _has_product_of_sums(position) else position
        for term in sympy.Add.make_args(expanded):
            variable, factor = _split(term, variables)
            if variable is None:
                rest.append(term * step)
            else:
                coefficients[variable] = coefficients.get(variable, _ZERO) + factor * step
    remainder = sympy.Add(*rest)
    nonlinear = frozenset(remainder.free_symbols.intersection(variables)) if rest else frozenset()
    return Affine(coefficients, remainder, nonlinear)


def _has_product_of_sums(expr: Expr) -> bool:
    terms = sympy.Add.make_args(expr)
    return any(
        term.is_Mul and any(factor.is_Add or factor.is_Pow for factor in term.args)
        for term in terms
    )


def _split(term: Expr, variables: Collection[sympy.Symbol]) -> tuple[sympy.Symbol | None, Expr]:
    if term.is_Symbol:
        return (term, _ONE) if term in variables else (None, _ZERO)
    if not term.is_Mul:
        return None, _ZERO
    loops = [factor for factor in term.args if factor.is_Symbol and factor in variables]
    if len(loops) != 1:
        return None, _ZERO
    others = [factor for factor in term.args if factor is not loops[0]]
    if any(not f.free_symbols.isdisjoint(variables) for f in others if not f.is_Integer):
        return None, _ZERO
    return loops[0], sympy.Mul(*others)


def divides(divisor: int, expr: Expr) -> bool:
    """Whether ``expr`` is a multiple of ``divisor`` whatever its symbols are (False: not known)."""
    if divisor == 1:
        return True
    if expr.is_Integer:
        return int(expr) % divisor == 0
    if expr.is_Mul:
        coefficient = expr.args[0]
        return bool(coefficient.is_Integer) and int(coefficient) % divisor == 0
    if expr.is_Add:
        return all(divides(divisor, term) for term in expr.args)
    return False
