"""Substitution of index expressions for the loop variables of a tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import sympy

from scheduler.fuel import spend_fuel
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv, Mod
from scheduler.ir.values import IndexValue, Load, Value, map_children

_NODE_FUEL = 10  # steps of rebuilding a node of an expression


def substitute_expr(expr: Expr, exprs: Mapping[sympy.Symbol, Expr]) -> Expr:
    """Substitute expressions for symbols simultaneously."""
    if expr.is_Symbol:
        return exprs.get(expr, expr)
    if expr.is_Integer or not expr.free_symbols.intersection(exprs):
        return expr
    spend_fuel(_NODE_FUEL)
    args = [substitute_expr(arg, exprs) for arg in expr.args]
    if isinstance(expr, FloorDiv | Mod):
        return type(expr)(*args)
    return expr.func(*args)


def substitute(value: Value, exprs: Mapping[sympy.Symbol, Expr]) -> Value:
    """Substitute expressions for loop variables in every index, without simplification."""
    if not exprs:
        return value
    return Substitution(exprs).apply(value)


class Substitution:
    """One substitution over many trees; shared parts stay shared."""

    def __init__(self, exprs: Mapping[sympy.Symbol, Expr]) -> None:
        self._exprs = exprs
        self._done: dict[int, tuple[Value, Value]] = {}

    def apply(self, value: Value) -> Value:
        """Return the tree after the substitution."""
        known = self._done.get(id(value))
        if known is None:
            known = self._done[id(value)] = (value, self._apply(value))
        return known[1]

    def _apply(self, value: Value) -> Value:
        if isinstance(value, IndexValue):
            return replace(value, expr=substitute_expr(value.expr, self._exprs))
        changed = map_children(value, self.apply)
        if isinstance(changed, Load):
            index = tuple(substitute_expr(i, self._exprs) for i in changed.index)
            return replace(changed, index=index)
        return changed
