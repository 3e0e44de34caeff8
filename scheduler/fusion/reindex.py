"""Rewriting of operations over other loops that visit the same points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.inverse import Index
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.index.simplify import simplify
from scheduler.ir.index.substitute import substitute, substitute_expr
from scheduler.ir.index.trees import simplify_tree
from scheduler.ir.operations import Axis, Pointwise, Reduction, Store
from scheduler.ir.values import Value

#: Maps each variable of one loop nest to its expression over another loop nest.
Reindexing = Mapping[sympy.Symbol, Expr]


def reindex_value(value: Value, reindexing: Reindexing, ranges: Ranges) -> Value:
    """Return ``value`` with variables replaced by ``reindexing``, simplified over ``ranges``."""
    if all(var == expr for var, expr in reindexing.items()):
        return value
    return simplify_tree(substitute(value, reindexing), ranges)


def reindex_index(index: Index, reindexing: Reindexing, ranges: Ranges) -> Index:
    return tuple(simplify(substitute_expr(i, reindexing), ranges) for i in index)


def reindex_store(store: Store, reindexing: Reindexing, ranges: Ranges) -> Store:
    return replace(
        store,
        index=reindex_index(store.index, reindexing, ranges),
        value=reindex_value(store.value, reindexing, ranges),
    )


def reindex_pointwise(
    op: Pointwise, reindexing: Reindexing, axes: tuple[Axis, ...], sizes: Ranges
) -> Pointwise:
    return replace(op, axes=axes, store=reindex_store(op.store, reindexing, sizes.over(axes)))


def reindex_reduction(
    op: Reduction,
    reindexing: Reindexing,
    outer: tuple[Axis, ...],
    inner: tuple[Axis, ...],
    sizes: Ranges,
) -> Reduction:
    return replace(
        op,
        axes=outer,
        reduction_axes=inner,
        value=reindex_value(op.value, reindexing, sizes.over((*outer, *inner))),
        store=reindex_store(op.store, reindexing, sizes.over(outer)),
    )
