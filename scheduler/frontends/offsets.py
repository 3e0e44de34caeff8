"""Strided views of tensors that begin inside other memory.

torch counts the ``storage_offset`` of ``as_strided`` from the start of the tensor's storage. An
example input of an export may have been part of a larger tensor, but the model runs with separate
arrays whose memory begins at their first element.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from scheduler.errors import UserError
from scheduler.frontends.fields import Json
from scheduler.ir.graph import Node, Ref

_LABEL = "storage_offset"
# Position of the offset among the arguments of each op that takes one.
_POSITIONS = {
    "aten.as_strided.default": 3,
    "aten.as_strided_.default": 3,
    "aten.as_strided_copy.default": 3,
    "aten.as_strided_scatter.default": 4,
}


def first_element(meta: Json) -> int | None:
    """The offset of a value's first element in its storage, in elements; None if it depends on
    sizes."""
    offset: Any = meta.get(_LABEL)
    if not isinstance(offset, dict):
        return 0
    number = offset.get("as_int")
    return number if isinstance(number, int) else None


def rebase_offset(node: Node, first_elements: dict[str, int | None]) -> Node:
    """Return the node with its offset relative to the first element of its tensor;
    ``first_elements`` maps names to the offsets of first elements.

    Raises ``UserError`` if either of the two is not a plain number.
    """
    if node.target not in _POSITIONS:
        return node
    position = node.labels.index(_LABEL) if _LABEL in node.labels else _POSITIONS[node.target]
    tensor = node.args[0] if node.args else None
    first = first_elements.get(tensor.name, 0) if isinstance(tensor, Ref) else 0
    is_keyword = _LABEL in node.kwargs or position >= len(node.args)
    offset = node.kwargs.get(_LABEL) if is_keyword else node.args[position]
    if offset is None or first == 0:
        return node
    if first is None or not isinstance(offset, int):
        raise UserError(
            f"node {node.name!r}: {node.target} has an offset from the start of its "
            "tensor's memory that depends on sizes, which is not supported: export with "
            "inputs that own their memory (clone them)"
        )
    if is_keyword:
        return replace(node, kwargs={**node.kwargs, _LABEL: offset - first})
    args = (*node.args[:position], offset - first, *node.args[position + 1 :])
    return replace(node, args=args)
