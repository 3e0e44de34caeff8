"""The contractions of a scheduled node, seen the way that suits a kernel in any language."""

from __future__ import annotations

from scheduler.codegen.contraction.axes import (
    columns_contiguous,
    window_as_in_memory,
    with_split_axes,
)
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.bindings import hint_bindings
from scheduler.ir.operations import Contraction, Lowered


def products(node: SchedulerNode, lowered: Lowered) -> tuple[Contraction, ...]:
    """Of a matrix product. Raises ``TypeError`` where a member is no contraction."""
    return _by_columns(with_split_axes(_members(node)), lowered)


def windows(node: SchedulerNode, lowered: Lowered) -> tuple[Contraction, ...]:
    """Of a convolution: k in the order of the input's memory. Raises as ``products``."""
    sizes = hint_bindings(lowered.graph.symbols)
    ordered = tuple(
        window_as_in_memory(member, lowered.buffers, sizes)
        for member in with_split_axes(_members(node))
    )
    return _by_columns(ordered, lowered)


def _members(node: SchedulerNode) -> tuple[Contraction, ...]:
    if len(node.contractions) != len(node.members):
        raise TypeError(f"{node.name} has members that are no contractions")
    return node.contractions


def _by_columns(members: tuple[Contraction, ...], lowered: Lowered) -> tuple[Contraction, ...]:
    """Several share ``a`` and its axes; one alone may have m and n exchanged."""
    if len(members) > 1:
        return members
    return (columns_contiguous(members[0], lowered.buffers),)
