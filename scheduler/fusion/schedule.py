"""Schedules operations: groups that become kernels, in execution order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby

from scheduler.fuel import fuel_limit
from scheduler.fusion.finalize import finalize
from scheduler.fusion.fuse import Fusion
from scheduler.fusion.horizontal import fuse_horizontally
from scheduler.fusion.memory import plan_memory, with_frees
from scheduler.fusion.node_builder import single_node
from scheduler.fusion.nodes import FusionDecision, Schedule, SchedulerNode
from scheduler.fusion.verifier import verify
from scheduler.ir.operations import GroupKind, Lowered, Operation
from scheduler.limits import SCHEDULING_FUEL


def schedule(lowered: Lowered, *, fuse: bool = True) -> Schedule:
    """Group operations into scheduler nodes that become one kernel each.

    With ``fuse`` False every operation is a separate kernel: the schedule to compare with.
    Raises ``LimitError`` if it takes more steps than allowed for the number of operations.
    """
    with fuel_limit("scheduling", SCHEDULING_FUEL.for_parts(len(lowered.operations))):
        return _schedule(lowered, fuse=fuse)


def _schedule(lowered: Lowered, *, fuse: bool) -> Schedule:
    positions = {node.name: position for position, node in enumerate(lowered.graph.nodes)}
    decisions: list[FusionDecision] = []
    if fuse:
        nodes, decisions = _fuse(lowered, positions)
    else:
        nodes = [single_node(operation, positions) for operation in lowered.operations]
    ordered = with_frees(nodes, lowered.buffers)
    storage, pools = plan_memory(ordered, lowered.buffers, lowered.graph.symbols)
    made = Schedule(lowered, ordered, tuple(decisions), storage, pools, fused=fuse)
    verify(made)
    return made


def _fuse(
    lowered: Lowered, positions: dict[str, int]
) -> tuple[list[SchedulerNode], list[FusionDecision]]:
    """Fuse between loop markers; no operation is fused or moved across one."""
    nodes: list[SchedulerNode] = []
    decisions: list[FusionDecision] = []
    parts = _split_at_loops(lowered.operations)
    readers: dict[str, set[int]] = {}
    for number, part in enumerate(parts):
        for name in (name for op in part for name in op.reads):
            readers.setdefault(name, set()).add(number)
    for number, part in enumerate(parts):
        if part[0].group_kind is GroupKind.LOOP:
            nodes.append(single_node(part[0], positions))
            continue
        elsewhere = {n for op in part for n in op.writes if readers.get(n, set()) - {number}}
        made, decided = _fuse_part(lowered, part, elsewhere, positions)
        nodes += made
        decisions += decided
    return nodes, decisions


def _split_at_loops(operations: Sequence[Operation]) -> list[list[Operation]]:
    """Split the operations at loop markers; each marker is a part of its own."""
    parts: list[list[Operation]] = []
    for is_mark, run in groupby(operations, lambda op: op.group_kind is GroupKind.LOOP):
        part = list(run)
        parts += [[mark] for mark in part] if is_mark else [part]
    return parts


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
        nodes.append(finalize(group, needed, positions))
    nodes, beside = fuse_horizontally(nodes, positions)
    return nodes, [*fusion.decisions, *beside]
