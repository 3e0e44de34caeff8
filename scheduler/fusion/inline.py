"""Inlining of pointwise values into the trees that read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler.fusion.cost import is_view_like
from scheduler.fusion.group import Group, new_group
from scheduler.fusion.nodes import FusionDecision
from scheduler.ir.index.inverse import reindexing_at
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.index.substitute import substitute
from scheduler.ir.index.trees import access_ranges, simplify_tree
from scheduler.ir.operations import Buffer, GroupKind, Operation
from scheduler.ir.values import Cast, Load, Value, loads, rebuild
from scheduler.lowering.builder import bind_indirect


def inlined_value(group: Group, buffer: str) -> tuple[Value, tuple[str, ...]]:
    """Return the value that a pointwise group stores to ``buffer``, as a tree over reads from
    outside the group, and the graph nodes that it computes."""
    values: dict[str, Value] = {}
    nodes: dict[str, dict[str, None]] = {}
    for member in group.members:
        (store,) = member.results
        node_names = dict.fromkeys(member.nodes)
        for load in loads(store.value):
            node_names.update(nodes.get(load.buffer, {}))
        values[store.buffer] = substitute_loads(store.value, values)
        nodes[store.buffer] = node_names
    return values[buffer], tuple(nodes[buffer])


def substitute_loads(value: Value, values: Mapping[str, Value]) -> Value:
    """Replace reads of some buffers by value trees (at the point where they are computed)."""
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
    """Return ``op`` with reads of ``buffer`` replaced by ``value`` (over the group's loops).

    Returns None if the index cannot be expressed over the group's loops.
    """
    stored_index = group.written()[buffer]
    size = buffers[buffer].size
    unexpressed_loads: list[Load] = []

    def change(load: Value) -> Value | None:
        if not isinstance(load, Load) or load.buffer != buffer:
            return None
        reader_ranges = access_ranges(load, reader.ranges.over(op.loops))
        reindexing = reindexing_at(stored_index, size, group.outer, load.index, reader_ranges)
        if reindexing is None:
            unexpressed_loads.append(load)
            return None
        result = substitute(value, reindexing)
        for indirect in load.indirect:
            result = bind_indirect(result, indirect)
        result = simplify_tree(result, reader_ranges)
        if op.rounds_reads and result.dtype is not load.dtype:
            return Cast(result, load.dtype)
        return result

    if not any(load.buffer == buffer for tree in op.trees for load in loads(tree)):
        return op
    result = op.map_trees(lambda tree: rebuild(tree, change))
    return None if unexpressed_loads else result.with_nodes(nodes)


def inline_views(
    operations: Sequence[Operation],
    buffers: Mapping[str, Buffer],
    sizes: Ranges,
    outputs: set[str],
    decisions: list[FusionDecision],
) -> list[Operation]:
    """Inline casts and index arithmetic into every reader; no reader then reads more bytes."""
    consumers: dict[str, list[Operation]] = {}
    for op in operations:
        for name in op.reads:
            consumers.setdefault(name, []).append(op)
    pending: dict[str, Group] = {}
    result: list[Operation] = []
    for op in operations:
        inlined = op
        for name in op.reads:
            if name in pending:
                producer = pending[name]
                value, nodes = inlined_value(producer, name)
                reader = new_group(0, inlined, 0, sizes)
                changed = replace_loads(inlined, name, value, nodes, producer, reader, buffers)
                assert changed is not None
                reason = "inlined: as cheap to read as a view"
                decisions.append(FusionDecision(producer.name, op.name, True, reason))
                inlined = changed
        if inlined.group_kind is GroupKind.POINTWISE and not outputs.intersection(inlined.writes):
            (written,) = inlined.writes
            if is_view_like(inlined, consumers.get(written, [])):
                pending[written] = new_group(0, inlined, 0, sizes)
                continue
        result.append(inlined)
    return result
