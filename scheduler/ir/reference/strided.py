"""Reference of strided views."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from scheduler.ir.reference.rule import STRIDES, Args, Array, UnsupportedUseError


def _memory(a: Args, x: Array) -> tuple[Array, tuple[int, ...]]:
    """Return the elements in torch's memory order, and the axes in that order."""
    strides = a[STRIDES]
    if strides is None:
        raise UnsupportedUseError("the memory layout of its tensor is unknown")
    axes = [axis for axis in range(x.ndim) if x.shape[axis] != 1]
    order = sorted(axes, key=lambda axis: -strides[axis])
    step = 1
    for axis in reversed(order):
        if x.size and strides[axis] != step:
            raise UnsupportedUseError(
                "a strided view of memory with gaps or shared elements is not supported"
            )
        step *= x.shape[axis]
    order = [axis for axis in range(x.ndim) if axis not in order] + order
    return x.transpose(order), tuple(order)


def _view(a: Args, memory: Array) -> Array:
    """Return the view. Raises ``UnsupportedUseError`` if it exceeds the memory."""
    offset, size, stride = a["storage_offset"] or 0, a["size"], a["stride"]
    if min((*size, *stride), default=0) < 0:
        raise UnsupportedUseError("negative sizes or strides are not supported")
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if 0 in size:
        return np.zeros(size, dtype=memory.dtype)
    if offset < 0 or last >= memory.size:
        raise UnsupportedUseError("a strided view that leaves its memory is not supported")
    steps = tuple(step * memory.itemsize for step in stride)
    return np.lib.stride_tricks.as_strided(memory.reshape(-1)[offset:], size, steps)


def as_strided(a: Args) -> Any:
    """Return a view, so that writes are visible; a necessary copy is not writable."""
    memory, _ = _memory(a, a["self"])
    view = _view(a, memory)
    if not memory.flags.c_contiguous:
        view.flags.writeable = False
    return view


def resize(a: Args) -> Any:
    """Return the first elements in memory order, in the new shape; a larger shape would expose
    uninitialized memory."""
    x, size = a["self"], tuple(a["size"] if "size" in a else a["the_template"].shape)
    if a["memory_format"] is not None:
        raise UnsupportedUseError("resizing a tensor to another memory format is not supported")
    if size == x.shape:
        return x
    steps = tuple(math.prod(size[d + 1 :]) for d in range(len(size)))
    return as_strided({**a, "size": size, "stride": steps, "storage_offset": 0})


def as_strided_copy(a: Args) -> Array:
    memory, _ = _memory(a, a["self"])
    return _view(a, memory).copy()


def as_strided_scatter(a: Args) -> Array:
    memory, order = _memory(a, a["self"])
    made = np.array(memory, order="C")
    places = _view(a, np.arange(made.size)).reshape(-1)
    made.reshape(-1)[places] = np.broadcast_to(a["src"], a["size"]).reshape(-1)
    return np.asarray(made.transpose(np.argsort(order))) if made.ndim else made
