"""The operations that fusion has put before and after a template's own operation."""

from __future__ import annotations

from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.values import Accumulator, Call, Cast, Value, walk


def has_epilogue(node: SchedulerNode) -> bool:
    """Whether more is stored than the template's result, converted to the buffer's type."""
    stores = [store for member in node.members for store in member.results]
    several = len(stores) > len(node.members)
    return several or any(not _is_result(store.value) for store in stores)


def has_prologue(node: SchedulerNode) -> bool:
    """Whether an operand is computed rather than read."""
    operands = [value for member in node.members for value in member.matrix_operands]
    return any(isinstance(part, Call) for value in operands for part in walk(value))


def _is_result(value: Value) -> bool:
    while isinstance(value, Cast):
        value = value.value
    return isinstance(value, Accumulator)
