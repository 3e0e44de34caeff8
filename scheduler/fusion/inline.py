"""Putting a pointwise value into the trees that read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import sympy

from scheduler.fusion.group import Group
from scheduler.fusion.points import exchange_at
from scheduler.ir.access import trees_of
from scheduler.ir.graph import Expr
from scheduler.ir.index.substitute import substitute
from scheduler.ir.index.trees import ranges_inside, simplify_tree
from scheduler.ir.operations import (
    Attention,
    Axis,
    Buffer,
    Contraction,
    Extern,
    Operation,
    Pointwise,
    Reduction,
    Scan,
    Store,
)
from scheduler.ir.values import Cast, Load, Value, loads, rebuild
from scheduler.lowering.builder import bind_indirect


def inlined(group: Group, buffer: str) -> tuple[Value, tuple[str, ...]]:
    """The value that a pointwise group stores to ``buffer``, from outside reads alone, and the
    graph nodes that it computes."""
    values: dict[str, Value] = {}
    nodes: dict[str, dict[str, None]] = {}
    for member in group.members:
        assert isinstance(member, Pointwise)
        store = member.store
        own = dict.fromkeys(member.nodes)
        for load in loads(store.value):
            own.update(nodes.get(load.buffer, {}))
        values[store.buffer] = with_values(store.value, values)
        nodes[store.buffer] = own
    return values[buffer], tuple(nodes[buffer])


def with_values(value: Value, values: Mapping[str, Value]) -> Value:
    """A tree with trees for reads of some buffers (at the point where they are computed)."""
    if not values:
        return value
    return rebuild(value, lambda p: values.get(p.buffer) if isinstance(p, Load) else None)


def replace_loads(
    op: Operation,
    buffer: str,
    value: Value,
    nodes: tuple[str, ...],
    group: Group,
    reader: Group,
    buffers: Mapping[str, Buffer],
) -> Operation | None:
    """``op`` computing ``value`` (over the group's loops) where it reads ``buffer``.

    None where the place cannot be expressed over the group's loops.
    """
    place = group.written()[buffer]
    size = buffers[buffer].size
    failed: list[Load] = []
    # Matrix instructions take operands of their own type: rounded, as they would be in memory.
    rounds = isinstance(op, Contraction | Attention)

    def change(part: Value) -> Value | None:
        if not isinstance(part, Load) or part.buffer != buffer:
            return None
        inside = ranges_inside(part, all_ranges(op, reader))
        exchange = exchange_at(place, size, group.outer, part.index, inside)
        if exchange is None:
            failed.append(part)
            return None
        made = substitute(value, exchange)
        for indirect in part.indirect:
            made = bind_indirect(made, indirect)
        made = simplify_tree(made, inside)
        if rounds and made.dtype is not part.dtype:
            return Cast(made, part.dtype)
        return made

    if not any(load.buffer == buffer for tree in trees_of(op) for load in loads(tree)):
        return op
    made = map_trees(op, lambda tree: rebuild(tree, change))
    return None if failed else with_nodes(made, nodes)


def all_ranges(op: Operation, reader: Group) -> dict[sympy.Symbol, Expr]:
    """Every loop of an operation, those of a template's operands included."""
    ranges = reader.ranges
    axes: list[Axis] = []
    if isinstance(op, Contraction):
        axes = [*op.batch, *op.m, *op.n, *op.k]
    elif isinstance(op, Attention):
        axes = [*op.batch, op.row, op.column, op.depth, op.value_depth]
    return {**ranges, **{axis.var: axis.size for axis in axes}}


def map_trees(op: Operation, change: Callable[[Value], Value]) -> Operation:
    """An operation with every tree changed."""

    def stored(store: Store) -> Store:
        return replace(store, value=change(store.value))

    if isinstance(op, Pointwise):
        return replace(op, store=stored(op.store))
    if isinstance(op, Reduction | Scan):
        return replace(op, value=change(op.value), store=stored(op.store))
    if isinstance(op, Contraction):
        stores = tuple(stored(store) for store in op.stores)
        return replace(op, a=change(op.a), b=change(op.b), stores=stores)
    if isinstance(op, Attention):
        return replace(
            op,
            q=change(op.q),
            k=change(op.k),
            v=change(op.v),
            mask=None if op.mask is None else change(op.mask),
            stores=tuple(stored(store) for store in op.stores),
        )
    assert isinstance(op, Extern)
    return op


def with_nodes(op: Operation, nodes: tuple[str, ...]) -> Operation:
    """An operation that computes further graph nodes, which come first."""

    def joined(own: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*nodes, *own)))

    def stored(store: Store) -> Store:
        return replace(store, nodes=joined(store.nodes))

    if isinstance(op, Pointwise | Reduction | Scan):
        return replace(op, store=stored(op.store), nodes=joined(op.nodes))
    if isinstance(op, Contraction | Attention):
        stores = tuple(stored(store) for store in op.stores)
        return replace(op, stores=stores, nodes=joined(op.nodes))
    return replace(op, nodes=joined(op.nodes))
