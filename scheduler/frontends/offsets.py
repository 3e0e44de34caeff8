"""Views by strides of tensors that begin within other memory.

torch counts the ``storage_offset`` of ``as_strided`` from the start of the memory that a tensor is
in. An example input of an export may have been a part of a larger tensor; the model is then run
with arrays of its own, whose memory begins with their first element.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from scheduler.errors import UserError
from scheduler.frontends.fields import Json
from scheduler.ir.graph import Node, Ref

_LABEL = "storage_offset"
# Its place among the arguments of each op that has it.
_PLACES = {
    "aten.as_strided.default": 3,
    "aten.as_strided_.default": 3,
    "aten.as_strided_copy.default": 3,
    "aten.as_strided_scatter.default": 4,
}


def first_element(meta: Json) -> int | None:
    """Where a value begins in its memory, in elements; None where that depends on sizes."""
    offset: Any = meta.get(_LABEL)
    if not isinstance(offset, dict):
        return 0
    number = offset.get("as_int")
    return number if isinstance(number, int) else None


def rebase_offset(node: Node, begins: dict[str, int | None]) -> Node:
    """The node with its offset counted from where its tensor begins, as ``begins`` has it by name.

    Raises ``UserError`` where one of the two is no plain number.
    """
    if node.target not in _PLACES:
        return node
    place = node.labels.index(_LABEL) if _LABEL in node.labels else _PLACES[node.target]
    tensor = node.args[0] if node.args else None
    begin = begins.get(tensor.name, 0) if isinstance(tensor, Ref) else 0
    named = _LABEL in node.kwargs or place >= len(node.args)
    given = node.kwargs.get(_LABEL) if named else node.args[place]
    if given is None or begin == 0:
        return node
    if begin is None or not isinstance(given, int):
        raise UserError(
            f"node {node.name!r}: {node.target} counts from the start of the memory that its"
            " tensor is a part of, by a number that depends on sizes: export with inputs that have"
            " memory of their own (clone them)"
        )
    if named:
        return replace(node, kwargs={**node.kwargs, _LABEL: given - begin})
    return replace(node, args=(*node.args[:place], given - begin, *node.args[place + 1 :]))
