"""The contractions of a scheduled node, in the form that suits a kernel in any language."""

from __future__ import annotations

from scheduler.codegen.contraction.axes import (
    make_columns_contiguous,
    order_window_by_stride,
    split_axes,
)
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.bindings import hint_bindings
from scheduler.ir.operations import Contraction, Lowered


def gemm_contractions(node: SchedulerNode, lowered: Lowered) -> tuple[Contraction, ...]:
    """Return the contractions of a matrix product. Raises ``TypeError`` if a member is not a
    contraction."""
    return _contiguous_columns(split_axes(_members(node)), lowered)


def convolution_contractions(node: SchedulerNode, lowered: Lowered) -> tuple[Contraction, ...]:
    """Return the contractions of a convolution: k in the order of the input's memory. Raises as
    ``gemm_contractions`` does."""
    sizes = hint_bindings(lowered.graph.symbols)
    ordered = tuple(
        order_window_by_stride(member, lowered.buffers, sizes)
        for member in split_axes(_members(node))
    )
    return _contiguous_columns(ordered, lowered)


def _members(node: SchedulerNode) -> tuple[Contraction, ...]:
    if len(node.contractions) != len(node.members):
        raise TypeError(f"{node.name} has members that are not contractions")
    return node.contractions


def _contiguous_columns(
    members: tuple[Contraction, ...], lowered: Lowered
) -> tuple[Contraction, ...]:
    """Exchange m and n of a single contraction if needed; several share ``a`` and its axes."""
    if len(members) > 1:
        return members
    return (make_columns_contiguous(members[0], lowered.buffers),)
