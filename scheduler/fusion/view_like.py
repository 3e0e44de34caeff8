"""Inlining of view-like operations into every reader, before groups are formed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler.fusion.cost import is_view_like
from scheduler.fusion.group import Group, new_group
from scheduler.fusion.inline import inlined_value, replace_loads
from scheduler.fusion.nodes import FusionDecision
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.operations import Buffer, GroupKind, Operation


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
        made = op
        for name in op.reads:
            if name in pending:
                value, nodes = inlined_value(pending[name], name)
                reader = new_group(0, made, 0, sizes)
                changed = replace_loads(made, name, value, nodes, pending[name], reader, buffers)
                assert changed is not None
                decisions.append(
                    FusionDecision(
                        pending[name].name, op.name, True, "inlined: as cheap to read as a view"
                    )
                )
                made = changed
        if made.group_kind is GroupKind.POINTWISE and not outputs.intersection(made.writes):
            (written,) = made.writes
            if is_view_like(made, consumers.get(written, [])):
                pending[written] = new_group(0, made, 0, sizes)
                continue
        result.append(made)
    return result
