"""Scheduler nodes from operations: kind, iteration sizes, what is read and written."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import sympy

from scheduler.fusion.nodes import GroupKind, SchedulerNode
from scheduler.ir.access import reads_of, writes_of
from scheduler.ir.graph import Expr
from scheduler.ir.index.simplify import simplify
from scheduler.ir.operations import (
    Attention,
    Axis,
    Contraction,
    Operation,
    Pointwise,
    Reduction,
    Scan,
)


def kind_of(operation: Operation) -> GroupKind:
    """Which renderer serves an operation that stands alone."""
    if isinstance(operation, Pointwise):
        return GroupKind.POINTWISE
    if isinstance(operation, Reduction):
        return GroupKind.REDUCTION
    if isinstance(operation, Scan):
        return GroupKind.SCAN
    if isinstance(operation, Contraction):
        return GroupKind.GEMM if operation.template == "gemm" else GroupKind.CONVOLUTION
    return GroupKind.ATTENTION if isinstance(operation, Attention) else GroupKind.EXTERN


def numel(axes: Iterable[Axis]) -> Expr:
    """How many points loops have."""
    return simplify(sympy.Mul(*(axis.size for axis in axes)), {})


def group_fn(operation: Operation) -> tuple[Expr, Expr]:
    """Inductor's: the product of the iteration sizes, and that of the reduction sizes."""
    one = sympy.Integer(1)
    if isinstance(operation, Pointwise):
        return numel(operation.axes), one
    if isinstance(operation, Reduction):
        return numel(operation.axes), numel(operation.reduction_axes)
    if isinstance(operation, Scan):
        return numel(operation.axes), numel([operation.scan_axis])
    if isinstance(operation, Contraction):
        # A template's reduction is its own affair: Inductor gives it no reduction extent.
        return numel([*operation.batch, *operation.m, *operation.n]), one
    if isinstance(operation, Attention):
        return numel([*operation.batch, operation.row, operation.value_depth]), one
    return one, one


def ordered_nodes(members: Sequence[Operation], positions: dict[str, int]) -> tuple[str, ...]:
    """Graph nodes of operations, each once, in the graph's order."""
    names = {name for member in members for name in member.nodes}
    return tuple(sorted(names, key=lambda name: positions.get(name, -1)))


def make_node(
    members: Sequence[Operation],
    kind: GroupKind,
    group: tuple[Expr, Expr],
    positions: dict[str, int],
    needed: Collection[str] | None = None,
) -> SchedulerNode:
    """One kernel to be: what its members read from outside, and what it writes to memory: of
    their results those ``needed`` outside (None: all of them)."""
    results = dict.fromkeys(n for m in members for n in writes_of(m))
    reads = dict.fromkeys(n for m in members for n in reads_of(m) if n not in results)
    writes = [name for name in results if needed is None or name in needed]
    return SchedulerNode(
        members[0].name,
        kind,
        tuple(members),
        group,
        tuple(reads),
        tuple(writes),
        ordered_nodes(members, positions),
    )
