"""Horizontal fusion: one kernel for matrix multiplications that share their left operand."""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from scheduler.fusion.nodes import (
    FusionDecision,
    SchedulerNode,
    make_node,
    numel,
    topological_order,
)
from scheduler.ir.index.simplify import simplify
from scheduler.ir.operations import GroupKind

#: Maximum members of one kernel: queries, keys, values, and one more.
_MAX_MEMBERS = 4
#: Maximum number of nodes visited in a search for a dependency; beyond it fusion is rejected.
_MAX_VISITS = 2000


def fuse_horizontally(
    nodes: Sequence[SchedulerNode], positions: dict[str, int]
) -> tuple[list[SchedulerNode], list[FusionDecision]]:
    """Fuse multiplications of the same ``a``; return the nodes in a valid execution order.

    They must agree in everything but the columns: ``a``, the batch, m and k axes, the dtype of
    ``b``. None may depend, directly or indirectly, on another.
    """
    writers = {name: k for k, node in enumerate(nodes) for name in node.writes}
    decisions: list[FusionDecision] = []
    groups: dict[object, list[list[int]]] = {}
    for k, node in enumerate(nodes):
        if node.kind is not GroupKind.GEMM or len(node.members) != 1:
            continue
        (main,) = node.contractions
        candidates = groups.setdefault((main.a, main.batch, main.m, main.k, main.b.dtype), [])
        for group in candidates:
            reason = ""
            if len(group) >= _MAX_MEMBERS:
                reason = f"the kernel already has the limit of {_MAX_MEMBERS} matrix products"
            elif _depends_on_any(k, set(group), nodes, writers):
                reason = "it needs the result of the other product"
            text = reason or "same left operand, which is read once"
            decisions.append(FusionDecision(nodes[group[0]].name, node.name, not reason, text))
            if not reason:
                group.append(k)
                break
        else:
            candidates.append([k])
    joined = {k: group for candidates in groups.values() for group in candidates for k in group}
    return _rebuild(nodes, joined, positions), decisions


def _depends_on_any(
    position: int, targets: set[int], nodes: Sequence[SchedulerNode], writers: dict[str, int]
) -> bool:
    """Whether the node at ``position`` depends on one of ``targets``; also True after
    ``_MAX_VISITS`` nodes."""
    first_target = min(targets)
    stack, seen = [position], {position}
    while stack:
        if len(seen) > _MAX_VISITS:
            return True
        for name in nodes[stack.pop()].reads:
            producer = writers.get(name, -1)
            if producer in targets:
                return True
            if producer > first_target and producer not in seen:
                seen.add(producer)
                stack.append(producer)
    return False


def _rebuild(
    nodes: Sequence[SchedulerNode], group_of_node: dict[int, list[int]], positions: dict[str, int]
) -> list[SchedulerNode]:
    """Put each fused node at the position of its last member, where all its inputs are available,
    and move readers of the earlier members behind it."""
    results = []
    for k, node in enumerate(nodes):
        group = group_of_node.get(k, [k])
        if len(group) == 1:
            results.append(node)
        elif k == group[-1]:
            members = [member for j in group for member in nodes[j].contractions]
            columns = sympy.Add(*(numel(member.n) for member in members))
            points = simplify(numel([*members[0].batch, *members[0].m]) * columns)
            extents = (points, sympy.Integer(1))
            results.append(make_node(members, GroupKind.GEMM, extents, positions))
    writers = {name: k for k, node in enumerate(results) for name in node.writes}
    depends = {
        k: {writers[name] for name in node.reads if name in writers}
        for k, node in enumerate(results)
    }
    return [results[k] for k in topological_order(depends, lambda k: k)]
