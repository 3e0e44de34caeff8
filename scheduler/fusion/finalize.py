"""Turns groups into scheduler nodes: values that no other kernel reads are not stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import sympy

from scheduler.fusion.group import Group
from scheduler.fusion.inline import substitute_loads
from scheduler.fusion.node_builder import group_fn, make_node, numel
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.operations import GroupKind, Operation, live_operations
from scheduler.ir.values import Value, loads


def finalize(group: Group, needed: set[str], positions: dict[str, int]) -> SchedulerNode:
    """Return the group as one kernel; ``needed`` are outputs and buffers that others read."""
    if group.kind in (GroupKind.POINTWISE, GroupKind.REDUCTION):
        members = _inlined_members(group, needed)
        extents = (numel(group.outer), numel(group.inner))
        if group.kind is GroupKind.POINTWISE:
            extents = (extents[0], sympy.Integer(1))
        return make_node(members, group.kind, extents, positions, needed)
    main = group.members[0]
    made = with_epilogues(main, group.members[1:], needed)
    return make_node([made], group.kind, group_fn(main), positions)


def _inlined_members(group: Group, needed: set[str]) -> list[Operation]:
    """Inline pointwise values into the members that read them, and drop unused members.

    A value that is computed once per row stays a member for readers at each step of a row.
    """
    values: dict[bool, dict[str, Value]] = {True: {}, False: {}}
    nodes: dict[str, tuple[str, ...]] = {}
    members: list[Operation] = []
    for member in group.members:
        inside = member.name in group.inside or not group.inner
        known = values[inside]
        inlined = [n for name in member.reads if name in known for n in nodes[name]]
        made = member.map_trees(partial(substitute_loads, values=known))
        made = made.with_nodes(tuple(dict.fromkeys(inlined)))
        members.append(made)
        if made.group_kind is GroupKind.POINTWISE:
            (store,) = made.results
            values[inside][store.buffer] = store.value
            nodes[store.buffer] = made.nodes
    return live_operations(members, needed)


def with_epilogues(main: Operation, epilogues: list[Operation], needed: set[str]) -> Operation:
    """Return a template with pointwise operations over its points as additional stores."""
    if not epilogues:
        return main
    values = {store.buffer: store.value for store in main.results}
    nodes = {store.buffer: store.nodes for store in main.results}
    stores = {store.buffer: store for store in main.results}
    for op in epilogues:
        (store,) = op.results
        inlined: Mapping[str, None] = dict.fromkeys(
            n for load in loads(store.value) for n in nodes.get(load.buffer, ())
        )
        made = replace(
            store,
            value=substitute_loads(store.value, values),
            nodes=tuple(dict.fromkeys((*inlined, *op.nodes))),
        )
        values[store.buffer], nodes[store.buffer] = made.value, made.nodes
        stores[store.buffer] = made
    kept = tuple(store for store in stores.values() if store.buffer in needed)
    every = tuple(dict.fromkeys(n for s in kept for n in (*main.nodes, *s.nodes)))
    return main.with_results(kept, every)
