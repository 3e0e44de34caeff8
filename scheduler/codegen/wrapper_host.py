"""Operations that ``wrapper.py`` computes on the host: ops with data-dependent result sizes.

Other ops without a kernel need the reference, which a wrapper does not include.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from scheduler.ir.dtypes import DType
from scheduler.ir.operations import buffer_size_symbol

_ITEM = "item"
#: Functions in the wrapper's text, by op: from arrays to a tuple of arrays.
_FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {
        "aten.item.default": _ITEM,
        "aten._local_scalar_dense.default": _ITEM,
        "aten.nonzero.default": "nonzero",
        "aten.argwhere.default": "nonzero",
        "aten.nonzero_numpy.default": "places",
        "aten.where.default": "places",
        "aten.masked_select.default": "selected",
        "aten.index.Tensor": "indexed",
        "aten.repeat_interleave.Tensor": "repeated",
    }
)
_VALUE_FUNCTIONS = frozenset(
    {"nonzero", "places", "repeated", _ITEM}
)  # ops on values, which floats stored as bits do not support


def host_function(extern: Mapping[str, Any], buffers: Mapping[str, Any]) -> str:
    """Return the wrapper's own function for an extern, or "" if it has none."""
    inputs = extern.get("inputs", ())
    function = _FUNCTIONS.get(extern["op"], "") if inputs else ""
    first = DType.from_label(buffers[inputs[0]]["dtype"]) if inputs else None
    if function in _VALUE_FUNCTIONS and first is not None and first.is_stored_as_bits:
        return ""
    return function


def sizes_of(extern: Mapping[str, Any], buffers: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the sizes that an extern defines, each with its text, from a tuple ``made``."""
    results = [name for name in extern["outputs"] if not buffer_size_symbol(name)]
    for name in extern["outputs"]:
        size = buffer_size_symbol(name)
        if not size:
            continue
        if not results:
            yield size, "int(made[0])"
            continue
        position, axis = next(
            (position, axis)
            for position, result in enumerate(results)
            for axis, extent in enumerate(buffers[result]["size"])
            if extent == size
        )
        yield size, f"made[{position}].shape[{axis}]"


def lines(
    extern: Mapping[str, Any],
    buffers: Mapping[str, Any],
    read: Callable[[str], str],
    variable: Callable[[str], str],
    store: Callable[[str, str], Iterator[str]],
) -> Iterator[str]:
    """Yield the wrapper's lines for an extern that has a function; ``read`` gives the text of a
    buffer's array, ``variable`` that of a size, ``store`` the lines that write a value to a
    buffer."""
    arguments = ", ".join(read(name) for name in extern["inputs"])
    yield "run.device.synchronize()"
    yield f"made = {host_function(extern, buffers)}({arguments})"
    for size, text in sizes_of(extern, buffers):
        yield f"{variable(size)} = read_size({size!r}, {text})"
    results = [name for name in extern["outputs"] if not buffer_size_symbol(name)]
    for position, name in enumerate(results):
        yield from store(name, f"made[{position}]")
