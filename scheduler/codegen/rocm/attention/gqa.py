"""Grouped-query attention: few queries of heads that share keys are rows of one tile, so that keys
and values are read once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv, Mod, as_expr
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.index.simplify import simplify
from scheduler.ir.index.substitute import Substitution, substitute_expr
from scheduler.ir.index.trees import index_exprs, simplify_tree
from scheduler.ir.operations import Attention, Axis
from scheduler.ir.values import Value

_TILE_ROWS = 32  # with fewer queries a tile is not full


def pack_gqa(operation: Attention, ranges: Ranges) -> Attention:
    """Return the same operation over other axes if its queries are too few to fill a tile and heads
    share keys and values: a row is then a query of one of those heads."""
    rows = operation.row.size
    if operation.causal or not rows.is_Integer or int(rows) >= _TILE_ROWS:
        return operation
    for axis in reversed(operation.batch):
        for heads in _group_sizes(operation, axis):
            shared = _pack_heads(operation, axis, heads, ranges)
            if shared is not None:
                return shared
    return operation


def _group_sizes(operation: Attention, axis: Axis) -> Iterator[int]:
    """Yield the numbers of neighbours along a batch axis that might share keys, largest first."""
    if not axis.size.is_Integer or axis.size == 1:
        return
    size, found = int(axis.size), {int(axis.size)}
    for index in (*index_exprs(operation.k), *index_exprs(operation.v)):
        for part in index.atoms(FloorDiv):
            if axis.var in part.args[0].free_symbols and part.args[1].is_Integer:
                found.add(int(part.args[1]))
    yield from sorted((n for n in found if n > 1 and size % n == 0), reverse=True)


def _pack_heads(operation: Attention, axis: Axis, heads: int, ranges: Ranges) -> Attention | None:
    """Return the operation with ``heads`` neighbours along ``axis`` in the rows; None if their keys
    differ."""
    rows = operation.row.size
    outer = replace(axis, size=as_expr(int(axis.size) // heads))
    row = replace(operation.row, size=as_expr(int(rows) * heads))
    batch = tuple(outer if one is axis else one for one in operation.batch)
    inside = ranges.over((*batch, row, operation.column, operation.depth, operation.value_depth))
    places: dict[sympy.Symbol, Expr] = {
        axis.var: axis.var * heads + simplify(FloorDiv(row.var, rows), inside),
        row.var: simplify(Mod(row.var, rows), inside),
    }
    change = Substitution(places)

    def tree(value: Value) -> Value:
        return simplify_tree(change.apply(value), inside)

    k, v = tree(operation.k), tree(operation.v)
    if any(row.var in index.free_symbols for value in (k, v) for index in index_exprs(value)):
        return None
    mask = None if operation.mask is None else tree(operation.mask)
    stores = tuple(
        replace(
            store,
            index=tuple(simplify(substitute_expr(i, places), inside) for i in store.index),
            value=tree(store.value),
        )
        for store in operation.stores
    )
    return replace(
        operation, batch=batch, row=row, q=tree(operation.q), k=k, v=v, mask=mask, stores=stores
    )
