"""Grouped-query attention: few queries of heads that share keys are rows of one tile, so that keys
and values are read once."""

from __future__ import annotations

from dataclasses import replace

from scheduler.fusion.reindex import Reindexing, reindex_store, reindex_value
from scheduler.ir.index.functions import FloorDiv, Mod, as_expr
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.index.simplify import simplify
from scheduler.ir.index.trees import index_exprs
from scheduler.ir.operations import Attention, Axis

_TILE_ROWS = 32  # with fewer queries a tile is not full


def pack_gqa(operation: Attention, ranges: Ranges) -> Attention:
    """Return the same operation over other axes if its queries are too few to fill a tile and heads
    share keys and values: a row is then a query of one of those heads."""
    rows = operation.row.size
    if operation.causal or not rows.is_Integer or int(rows) >= _TILE_ROWS:
        return operation
    indices = [*index_exprs(operation.k), *index_exprs(operation.v)]
    for axis in reversed(operation.batch):
        if not axis.size.is_Integer:
            continue
        # Numbers of neighbours along a batch axis that might share keys, largest first.
        size, counts = int(axis.size), {int(axis.size)}
        for division in (atom for index in indices for atom in index.atoms(FloorDiv)):
            if axis.var in division.args[0].free_symbols and division.args[1].is_Integer:
                counts.add(int(division.args[1]))
        for count in sorted((n for n in counts if n > 1 and size % n == 0), reverse=True):
            packed = _pack_heads(operation, axis, count, ranges)
            if packed is not None:
                return packed
    return operation


def _pack_heads(operation: Attention, axis: Axis, heads: int, ranges: Ranges) -> Attention | None:
    """Return the operation with ``heads`` neighbours along ``axis`` in the rows; None if their keys
    differ."""
    rows = operation.row.size
    batch_axis = replace(axis, size=as_expr(int(axis.size) // heads))
    row = replace(operation.row, size=as_expr(int(rows) * heads))
    batch = tuple(batch_axis if other is axis else other for other in operation.batch)
    ranges = ranges.over((*batch, row, operation.column, operation.depth, operation.value_depth))
    reindexing: Reindexing = {
        axis.var: axis.var * heads + simplify(FloorDiv(row.var, rows), ranges),
        row.var: simplify(Mod(row.var, rows), ranges),
    }
    q, k, v, *masks = (
        reindex_value(scope.value, reindexing, ranges) for scope in operation.operands
    )
    if any(row.var in index.free_symbols for value in (k, v) for index in index_exprs(value)):
        return None
    mask = masks[0] if masks else None
    stores = tuple(reindex_store(store, reindexing, ranges) for store in operation.stores)
    return replace(operation, batch=batch, row=row, q=q, k=k, v=v, mask=mask, stores=stores)
