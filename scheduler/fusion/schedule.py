"""Schedules operations: groups that become kernels, in execution order.

Values that no other kernel reads are not stored.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

import sympy

from scheduler.fuel import fuel_limit
from scheduler.fusion.fuse import Fusion
from scheduler.fusion.group import Group
from scheduler.fusion.horizontal import fuse_horizontally
from scheduler.fusion.inline import substitute_loads
from scheduler.fusion.memory import plan_memory, with_frees
from scheduler.fusion.nodes import (
    FusionDecision,
    Schedule,
    SchedulerNode,
    group_fn,
    make_node,
    numel,
    single_node,
)
from scheduler.fusion.verifier import verify
from scheduler.ir.operations import GroupKind, Lowered, Operation, live_operations
from scheduler.ir.values import Value, loads
from scheduler.limits import SCHEDULING_FUEL


def schedule(lowered: Lowered, *, fuse: bool = True) -> Schedule:
    """Group operations into scheduler nodes that become one kernel each.

    With ``fuse`` False every operation is a separate kernel: the schedule to compare with.
    Raises ``LimitError`` if it takes more steps than allowed for the number of operations.
    """
    with fuel_limit("scheduling", SCHEDULING_FUEL.for_parts(len(lowered.operations))):
        positions = {node.name: position for position, node in enumerate(lowered.graph.nodes)}
        decisions: list[FusionDecision] = []
        if fuse:
            nodes, decisions = _fuse(lowered, positions)
        else:
            nodes = [single_node(operation, positions) for operation in lowered.operations]
        ordered = with_frees(nodes, lowered.buffers)
        storage, pools = plan_memory(ordered, lowered.buffers, lowered.graph.symbols)
        plan = Schedule(lowered, ordered, tuple(decisions), storage, pools, fused=fuse)
        verify(plan)
        return plan


def _fuse(
    lowered: Lowered, positions: dict[str, int]
) -> tuple[list[SchedulerNode], list[FusionDecision]]:
    """Fuse between loop markers; no operation is fused or moved across one."""
    nodes: list[SchedulerNode] = []
    decisions: list[FusionDecision] = []
    sections: list[list[Operation]] = []  # each marker is a section
    for is_mark, operations in groupby(
        lowered.operations, lambda op: op.group_kind is GroupKind.LOOP
    ):
        section = list(operations)
        sections += [[mark] for mark in section] if is_mark else [section]
    readers: dict[str, set[int]] = {}
    for number, section in enumerate(sections):
        for name in (name for op in section for name in op.reads):
            readers.setdefault(name, set()).add(number)
    for number, section in enumerate(sections):
        if section[0].group_kind is GroupKind.LOOP:
            nodes.append(single_node(section[0], positions))
            continue
        read_by_others = {
            n for op in section for n in op.writes if readers.get(n, set()) - {number}
        }
        section_nodes, section_decisions = _fuse_part(lowered, section, read_by_others, positions)
        nodes += section_nodes
        decisions += section_decisions
    return nodes, decisions


def _fuse_part(
    lowered: Lowered,
    operations: Sequence[Operation],
    read_elsewhere: Collection[str],
    positions: dict[str, int],
) -> tuple[list[SchedulerNode], list[FusionDecision]]:
    fusion = Fusion(lowered, operations, read_elsewhere)
    groups = fusion.run()
    readers: dict[str, set[int]] = {}
    for group in groups:
        for name in group.reads():
            readers.setdefault(name, set()).add(group.number)
    nodes = []
    for group in groups:
        needed = {
            name
            for name in group.written()
            if name in fusion.outputs or readers.get(name, set()) - {group.number}
        }
        nodes.append(_finalize(group, needed, positions))
    nodes, horizontal = fuse_horizontally(nodes, positions)
    return nodes, [*fusion.decisions, *horizontal]


def _finalize(group: Group, needed: set[str], positions: dict[str, int]) -> SchedulerNode:
    """Return the group as one kernel; ``needed`` are outputs and buffers that others read."""
    if group.kind in (GroupKind.POINTWISE, GroupKind.REDUCTION):
        # Pointwise values are inlined into the members that read them. A value that is computed
        # once per row stays a member for readers at each step of a row.
        values: dict[bool, dict[str, Value]] = {True: {}, False: {}}
        nodes: dict[str, tuple[str, ...]] = {}
        members: list[Operation] = []
        for member in group.members:
            is_inner = member.name in group.inner_members or not group.inner
            inlined_values = values[is_inner]
            inlined = [n for name in member.reads if name in inlined_values for n in nodes[name]]
            op = member.map_trees(partial(substitute_loads, values=inlined_values))
            members.append(op.with_nodes(tuple(dict.fromkeys(inlined))))
            if op.group_kind is GroupKind.POINTWISE:
                (store,) = members[-1].results
                values[is_inner][store.buffer] = store.value
                nodes[store.buffer] = members[-1].nodes
        extents = (numel(group.outer), numel(group.inner))
        if group.kind is GroupKind.POINTWISE:
            extents = (extents[0], sympy.Integer(1))
        used = live_operations(members, needed)
        return make_node(used, group.kind, extents, positions, needed)
    main = group.members[0]
    stored = _with_epilogues(main, group.members[1:], needed)
    return make_node([stored], group.kind, group_fn(main), positions)


def _with_epilogues(main: Operation, epilogues: list[Operation], needed: set[str]) -> Operation:
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
        result = replace(
            store,
            value=substitute_loads(store.value, values),
            nodes=tuple(dict.fromkeys((*inlined, *op.nodes))),
        )
        values[store.buffer], nodes[store.buffer] = result.value, result.nodes
        stores[store.buffer] = result
    needed_stores = tuple(store for store in stores.values() if store.buffer in needed)
    node_names = tuple(dict.fromkeys(n for s in needed_stores for n in (*main.nodes, *s.nodes)))
    return main.with_results(needed_stores, node_names)
