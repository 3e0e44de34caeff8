"""Pointwise kernels that could have been part of a neighbour: there should be none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scheduler.fusion.group import Group, group_loops
from scheduler.fusion.legality import Rejection, join, merge_reindexing
from scheduler.fusion.nodes import Schedule, SchedulerNode
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.operations import BufferKind, GroupKind


def missed_fusions(plan: Schedule) -> list[tuple[str, str]]:
    """Pairs of a pointwise kernel and a producer or reader that it could legally join.

    Legal: every value is available at the same points, and no kernel in between depends on the one
    while the other depends on it.
    """
    sizes = Ranges.from_symbols(plan.lowered.graph.symbols)
    groups = [_group(number, node, sizes) for number, node in enumerate(plan.nodes)]
    writers = {name: k for k, node in enumerate(plan.nodes) for name in node.writes}
    for group, node in zip(groups, plan.nodes, strict=True):
        group.depends = {writers[name] for name in node.reads if name in writers}
    found = []
    for number, node in enumerate(plan.nodes):
        if node.kind is GroupKind.POINTWISE:
            for other in _neighbours(number, groups, plan):
                found.append((node.name, plan.nodes[other].name))
    return found


def _neighbours(number: int, groups: Sequence[Group], plan: Schedule) -> Iterator[int]:
    own, buffers = groups[number], plan.lowered.buffers
    for producer in sorted(own.depends):
        if groups[producer].kind is GroupKind.SCAN and not _replaces_store(producer, number, plan):
            continue
        answers = [join(member, groups[producer], buffers) for member in own.members]
        others = own.depends - {producer}
        if not any(isinstance(answer, Rejection) for answer in answers) and not _reaches(
            others, producer, groups
        ):
            yield producer
    for reader, group in enumerate(groups):
        if number not in group.depends:
            continue
        if group.kind not in (GroupKind.POINTWISE, GroupKind.REDUCTION):
            continue
        answer = merge_reindexing(own, group, buffers)
        others = group.depends - {number}
        if not isinstance(answer, Rejection) and not _reaches(others, number, groups):
            yield reader


def _replaces_store(scan: int, reader: int, plan: Schedule) -> bool:
    """Whether a kernel with one store is the only reader of a scan."""
    if len(plan.nodes[reader].writes) > 1:
        return False
    (buffer,) = plan.nodes[scan].writes
    readers = sum(buffer in node.reads for node in plan.nodes)
    return readers == 1 and plan.lowered.buffers[buffer].kind is BufferKind.INTERMEDIATE


def _reaches(starts: set[int], target: int, groups: Sequence[Group]) -> bool:
    stack, seen = list(starts), set(starts)
    while stack:
        number = stack.pop()
        if number == target:
            return True
        new = groups[number].depends - seen
        seen |= new
        stack.extend(new)
    return False


def _group(number: int, node: SchedulerNode, sizes: Ranges) -> Group:
    main = next((m for m in node.members if m.group_kind is GroupKind.REDUCTION), node.members[0])
    outer, inner = group_loops(main)
    return Group(number, node.kind, outer, inner, list(node.members), [number], sizes)
