"""Legality of a fusion: the operation runs over the group's points, and reads the group's values
only at the same point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from scheduler.fusion.group import Group
from scheduler.fusion.nodes import numel
from scheduler.fusion.reindex import Reindexing, reindex_index, reindex_pointwise, reindex_reduction
from scheduler.ir.index.inverse import invert_index, reindexing_at
from scheduler.ir.operations import (
    Axis,
    Buffer,
    GroupKind,
    Operation,
    Pointwise,
    Reduction,
    ReductionKind,
)
from scheduler.ir.values import Load, loads

#: Limits the size of a kernel and the time for fusion.
MAX_MEMBERS = 64
_ARG_KINDS = (ReductionKind.ARGMAX, ReductionKind.ARGMIN)


@dataclass(frozen=True)
class Rejection:
    """Why an operation does not join a group: the fusion is not legal, or not profitable."""

    reason: str


@dataclass(frozen=True)
class Placement:
    """An operation over a group's loops; ``is_inner``: it runs at each step of the inner loops.

    ``outer`` and ``inner`` are the group's new loops, and ``regrouped`` its members over these if
    they change.
    """

    op: Operation
    is_inner: bool
    outer: tuple[Axis, ...]
    inner: tuple[Axis, ...]
    regrouped: tuple[Operation, ...] = ()


Buffers = Mapping[str, Buffer]


def join(op: Operation, group: Group, buffers: Buffers) -> Placement | Rejection:
    """Place ``op`` after the members of ``group``, or return why it cannot join."""
    if len(group.members) >= MAX_MEMBERS:
        return Rejection(f"the group already has the limit of {MAX_MEMBERS} operations")
    if isinstance(op, Pointwise):
        return _join_pointwise(op, group, buffers)
    if not isinstance(op, Reduction):
        return Rejection("a template always starts its own kernel")
    if group.kind is GroupKind.POINTWISE:
        return _join_prologues(op, group, buffers)
    if group.kind is GroupKind.REDUCTION:
        return _join_reduction(op, group, buffers)
    return Rejection("a reduction needs whole rows, but a block of this kernel has parts of rows")


def direct_loads(op: Operation) -> Iterator[Load]:
    """Yield the reads of an operation whose index does not depend on data."""
    for tree in op.trees:
        yield from (load for load in loads(tree) if not load.indirect)


def _join_pointwise(op: Pointwise, group: Group, buffers: Buffers) -> Placement | Rejection:
    if group.kind is GroupKind.EXTERN:
        return Rejection("the producer is computed by the reference")
    if group.kind is GroupKind.SCATTER:
        return Rejection("scatter results are complete only after all of its writes")
    for reindexing, axes in _reindexings(op, group, buffers):
        result = reindex_pointwise(op, reindexing, axes, group.sizes)
        if _reads_same_points(result, group):
            is_inner = bool(group.inner) and len(axes) > len(group.outer)
            return Placement(result, is_inner, group.outer, group.inner)
    return Rejection("it reads the producer's result at other points than it computes")


def _reindexings(
    op: Pointwise, group: Group, buffers: Buffers
) -> Iterator[tuple[Reindexing, tuple[Axis, ...]]]:
    """Yield ways to run ``op`` over all of the group's loops, or over the outer loops only."""
    all_axes = (*group.outer, *group.inner)
    levels = [all_axes] if not group.inner else [all_axes, group.outer]
    for load in dict.fromkeys(direct_loads(op)):
        size = buffers[load.buffer].size
        for index in group.accesses(load.buffer):
            for axes in levels:
                if invert_index(index, size, axes) is None:
                    continue
                reindexing = reindexing_at(load.index, size, op.axes, index, group.sizes.over(axes))
                if reindexing is not None:
                    yield reindexing, axes
    if group.inner:
        yield from _row_reindexings(op, group, buffers)


def _row_reindexings(
    op: Pointwise, group: Group, buffers: Buffers
) -> Iterator[tuple[Reindexing, tuple[Axis, ...]]]:
    """Match loops along which a row's value is broadcast to inner loops of the same sizes."""
    written = group.written()
    for load in dict.fromkeys(direct_loads(op)):
        if load.buffer not in written:
            continue
        size, stored_index = buffers[load.buffer].size, written[load.buffer]
        row_axes = tuple(a for a in op.axes if any(i.has(a.var) for i in load.index))
        step_axes = tuple(a for a in op.axes if a not in row_axes)
        if invert_index(stored_index, size, group.outer) is None:
            continue
        if [a.size for a in step_axes] != [a.size for a in group.inner]:
            continue
        reindexing = reindexing_at(load.index, size, row_axes, stored_index, group.ranges)
        if reindexing is not None:
            steps = {
                op_axis.var: group_axis.var
                for op_axis, group_axis in zip(step_axes, group.inner, strict=True)
            }
            yield {**reindexing, **steps}, (*group.outer, *group.inner)


def _reads_same_points(op: Operation, group: Group) -> bool:
    """Whether ``op`` reads the group's values only at the same point."""
    written = group.written()
    all_loads = (load for tree in op.trees for load in loads(tree))
    return all(
        load.buffer not in written or load.index == written[load.buffer] for load in all_loads
    )


def _join_reduction(op: Reduction, group: Group, buffers: Buffers) -> Placement | Rejection:
    axes = op.loops
    all_axes = (*group.outer, *group.inner)
    outer, inner = ({a.var for a in part} for part in (group.outer, group.inner))
    for load in dict.fromkeys(direct_loads(op)):
        size = buffers[load.buffer].size
        for index in group.accesses(load.buffer):
            if invert_index(index, size, all_axes) is None:
                continue
            reindexing = reindexing_at(load.index, size, axes, index, group.ranges)
            if reindexing is None:
                continue
            if any(reindexing[a.var].free_symbols & inner for a in op.axes):
                continue
            if any(reindexing[a.var].free_symbols & outer for a in op.reduction_axes):
                continue
            steps = [reindexing[axis.var] for axis in op.reduction_axes]
            if op.kind in _ARG_KINDS and steps != [axis.var for axis in group.inner]:
                continue
            result = reindex_reduction(op, reindexing, group.outer, group.inner, group.sizes)
            if _reads_same_points(result, group):
                return Placement(result, True, group.outer, group.inner)
    return Rejection("it reduces other rows than the group")


def _join_prologues(op: Reduction, group: Group, buffers: Buffers) -> Placement | Rejection:
    """Make the pointwise members prologues, run at each step of the reduction's loops."""
    axes = op.loops
    if numel(axes) != numel(group.outer):
        return Rejection("it reduces other points than the group computes")
    ranges = group.sizes.over(axes)
    written = group.written()
    for load in dict.fromkeys(direct_loads(op)):
        if load.buffer not in written:
            continue
        size = buffers[load.buffer].size
        if invert_index(load.index, size, axes) is None:
            continue
        reindexing = reindexing_at(written[load.buffer], size, group.outer, load.index, ranges)
        if reindexing is None:
            continue
        regrouped = tuple(
            reindex_pointwise(member, reindexing, axes, group.sizes)
            for member in group.members
            if isinstance(member, Pointwise)
        )
        trial = replace(
            group,
            kind=GroupKind.REDUCTION,
            outer=op.axes,
            inner=op.reduction_axes,
            members=list(regrouped),
        )
        if _reads_same_points(op, trial):
            return Placement(op, True, op.axes, op.reduction_axes, regrouped)
    return Rejection("it reduces other points than the group computes")


def merge_reindexing(producer: Group, consumer: Group, buffers: Buffers) -> Reindexing | Rejection:
    """Express the producer's loops over the consumer's, if both visit the same points."""
    if len(producer.members) + len(consumer.members) > MAX_MEMBERS:
        return Rejection(f"together they exceed the limit of {MAX_MEMBERS} operations")
    all_axes = (*consumer.outer, *consumer.inner)
    ranges = consumer.sizes.over(all_axes)
    written = producer.written()
    trees = (tree for member in consumer.members for tree in member.trees)
    reads = [load for tree in trees for load in loads(tree) if load.buffer in written]
    for buffer, stored_index in written.items():
        size = buffers[buffer].size
        for index in consumer.accesses(buffer):
            if invert_index(index, size, all_axes) is None:
                continue
            reindexing = reindexing_at(stored_index, size, producer.outer, index, ranges)
            if reindexing is not None and all(
                load.index == reindex_index(written[load.buffer], reindexing, ranges)
                for load in reads
            ):
                return reindexing
    return Rejection("it reads the producer's result at other points than it computes")
