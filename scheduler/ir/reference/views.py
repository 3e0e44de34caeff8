"""Reference of views, strided ones too: NumPy views where torch has views, so that in-place writes
are visible."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from scheduler.ir.dtypes import DType
from scheduler.ir.encoding import encode_values, widen
from scheduler.ir.reference.rule import OWN_DTYPE, STRIDES, Args, Array, Rule, UnsupportedUseError


def _shape(size: tuple[int, ...], elements: int) -> tuple[int, ...]:
    """Return the sizes with -1 replaced; NumPy rejects -1 if another size is 0."""
    known = math.prod(n for n in size if n != -1)
    return tuple((elements // known if known else 0) if n == -1 else int(n) for n in size)


def view(a: Args) -> Array:
    if "dtype" in a:
        return _as_type(a["self"], a[OWN_DTYPE], a["dtype"])
    size = a["shape"] if "shape" in a else a["size"]
    return np.asarray(a["self"].reshape(_shape(size, a["self"].size)))


def _as_type(x: Array, source: DType | None, target: DType) -> Array:
    """Reinterpret the bits of elements as another type, in a copy: writes do not alias."""
    if source is None:
        raise UnsupportedUseError("a bit view as an unknown type is not supported")
    if source is target:
        return x
    bits = np.ascontiguousarray(encode_values(x, source)).reshape(x.shape)
    return widen(bits.view(target.numpy), target)


def expand(a: Args) -> Array:
    x, size = a["self"], a["size"]
    padded = (1,) * (len(size) - x.ndim) + x.shape
    shape = tuple(o if n == -1 else n for n, o in zip(size, padded, strict=True))
    return _expanded(x, shape)


def _expanded(x: Array, shape: tuple[int, ...]) -> Array:
    """Return a broadcast view, writable if no element is repeated."""
    return x if shape == x.shape else np.broadcast_to(x, shape)


def flatten(a: Args) -> Array:
    x = a["self"]
    if x.ndim == 0:
        return np.asarray(x.reshape(1))
    first, last = a["start_dim"] % x.ndim, a["end_dim"] % x.ndim
    middle = math.prod(x.shape[first : last + 1])
    return np.asarray(x.reshape(*x.shape[:first], middle, *x.shape[last + 1 :]))


def unflatten(a: Args) -> Array:
    x, dim = a["self"], a["dim"] % a["self"].ndim
    return np.asarray(
        x.reshape(*x.shape[:dim], *_shape(a["sizes"], x.shape[dim]), *x.shape[dim + 1 :])
    )


def squeeze(a: Args) -> Array:
    x = a["self"]
    if "dim" not in a:
        return np.asarray(np.squeeze(x))
    dims = a["dim"] if isinstance(a["dim"], tuple) else (a["dim"],)
    ones = tuple({d % x.ndim for d in dims if x.ndim and x.shape[d] == 1})
    return np.asarray(np.squeeze(x, axis=ones) if ones else x)


def swap_dims(first: str, second: str) -> Rule:
    def rule(a: Args) -> Array:
        return a["self"] if a["self"].ndim == 0 else np.swapaxes(a["self"], a[first], a[second])

    return rule


def slice_op(a: Args) -> Array:
    position = [slice(None)] * a["self"].ndim
    position[a["dim"]] = slice(a["start"], a["end"], a["step"])
    return np.asarray(a["self"][tuple(position)])


def select(a: Args) -> Any:
    position: list[Any] = [slice(None)] * a["self"].ndim
    position[a["dim"]] = a["index"]
    # The ellipsis preserves a view if no axis remains.
    return a["self"][(*position, ...)]


def narrow(a: Args) -> Array:
    start = int(a["start"])
    start = start + a["self"].shape[a["dim"]] if start < 0 else start
    return slice_op({**a, "start": start, "end": start + a["length"], "step": 1})


def _pieces(x: Array, sizes: list[int], dim: int) -> tuple[Array, ...]:
    ends = np.cumsum(sizes).tolist()
    return tuple(
        slice_op({"self": x, "dim": dim, "start": end - size, "end": end, "step": 1})
        for size, end in zip(sizes, ends, strict=True)
    )


def split(a: Args) -> tuple[Array, ...]:
    x, dim = a["self"], a["dim"]
    sizes = a["split_sizes"] if "split_sizes" in a else a["split_size"]
    if isinstance(sizes, tuple):
        return _pieces(x, list(sizes), dim)
    total = x.shape[dim]
    if total == 0:
        return (x,)
    return _pieces(x, [min(sizes, total - at) for at in range(0, total, sizes)], dim)


def chunk(a: Args) -> tuple[Array, ...]:
    size = -(a["self"].shape[a["dim"]] // -a["chunks"])
    return split({"self": a["self"], "dim": a["dim"], "split_size": max(size, 1)})


def unbind(a: Args) -> tuple[Array, ...]:
    return tuple(np.moveaxis(a["self"], a["dim"], 0)[(i, ...)] for i in range(_length(a)))


def _length(a: Args) -> int:
    return int(a["self"].shape[a["dim"]])


def unfold(a: Args) -> Array:
    x, dim = a["self"], a["dimension"]
    if not x.ndim:  # one window, of the element or of nothing
        return np.asarray(x.reshape(1)[: a["size"]])
    windows = np.lib.stride_tricks.sliding_window_view(x, a["size"], axis=dim)
    position = [slice(None)] * windows.ndim
    position[dim % x.ndim] = slice(None, None, a["step"])
    return np.asarray(windows[tuple(position)])


def contiguous(a: Args) -> Array:
    plain = a["memory_format"] in (None, "contiguous_format")
    return np.ascontiguousarray(a["self"]) if plain and a["self"].ndim else a["self"].copy()


def identity(a: Args) -> Array:
    array: Array = a["self"]
    return array


def view_as(a: Args) -> Any:
    return a["self"].reshape(a["other"].shape)


def expand_as(a: Args) -> Any:
    return _expanded(a["self"], a["other"].shape)


def broadcast_tensors(a: Args) -> Any:
    return tuple(np.broadcast_arrays(*a["tensors"]))


def permute(a: Args) -> Any:
    return np.transpose(a["self"], a["dims"])


def t(a: Args) -> Any:
    return a["self"].T


def transpose_last(a: Args) -> Any:
    return a["self"].swapaxes(-1, -2)


def movedim(a: Args) -> Any:
    return np.moveaxis(a["self"], a["source"], a["destination"])


def unsqueeze(a: Args) -> Any:
    return np.expand_dims(a["self"], a["dim"])


def diagonal(a: Args) -> Any:
    x = a["self"]
    view = np.diagonal(x, a["offset"], a["dim1"], a["dim2"])
    view.flags.writeable = x.flags.writeable  # NumPy's own may not be written to
    return view


def lift_fresh_copy(a: Args) -> Any:
    return a["self"].copy()


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
    byte_strides = tuple(step * memory.itemsize for step in stride)
    return np.lib.stride_tricks.as_strided(memory.reshape(-1)[offset:], size, byte_strides)


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
    result = np.array(memory, order="C")
    positions = _view(a, np.arange(result.size)).reshape(-1)
    result.reshape(-1)[positions] = np.broadcast_to(a["src"], a["size"]).reshape(-1)
    return np.asarray(result.transpose(np.argsort(order))) if result.ndim else result
