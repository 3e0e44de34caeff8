"""Reference of indexed reads and writes, concatenation and padding."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from scheduler.ir.reference.rule import Args, Array, Rule, UnsupportedUseError
from scheduler.limits import MAX_RESULT_ELEMENTS

_PAD_MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def gather_index(index: Array, dim: int) -> tuple[Array, ...]:
    """Return ``index`` along ``dim``, and each element's own position along the other axes."""
    positions = list(np.ix_(*(np.arange(size) for size in index.shape)))
    positions[dim] = index
    return tuple(positions)


def gather(a: Args) -> Array:
    x, index = a["self"], a["index"]
    if index.size == 0:
        return np.zeros(index.shape, dtype=x.dtype)
    if x.ndim == 0 or index.ndim == 0:
        return np.asarray(x.reshape(-1)[index])
    return np.asarray(x[gather_index(index, a["dim"] % x.ndim)])


def numpy_index(indices: tuple[Any, ...]) -> tuple[Any, ...]:
    """Convert torch's list of indices to NumPy's: None is the whole axis, uint8 is a mask."""
    return tuple(
        slice(None) if i is None else i.astype(bool) if i.dtype == np.uint8 else i for i in indices
    )


def take_along_dim(a: Args) -> Array:
    if a["dim"] is None:
        return np.asarray(a["self"].ravel()[a["indices"].ravel()])
    return np.asarray(np.take_along_axis(a["self"], a["indices"], a["dim"]))


def cat(a: Args) -> Array:
    # An empty 1-D tensor may be concatenated with anything.
    parts = [t for t in a["tensors"] if t.shape != (0,)] or list(a["tensors"])
    return np.concatenate(parts, axis=a["dim"])


def pad(a: Args) -> Array:
    """Pad by pairs from the last axis backwards; negative amounts crop."""
    x, amounts = a["self"], a["pad"]
    pairs = [(0, 0)] * (x.ndim - len(amounts) // 2)
    pairs += [(amounts[i], amounts[i + 1]) for i in range(len(amounts) - 2, -2, -2)]
    cut = tuple(
        slice(max(0, -low), size - max(0, -high))
        for (low, high), size in zip(pairs, x.shape, strict=True)
    )
    grown = [(max(0, low), max(0, high)) for low, high in pairs]
    mode = a.get("mode", "constant")
    if mode == "replicate" and min(x.shape, default=1) > 0:
        for axis, ((low, high), size) in enumerate(zip(pairs, x.shape, strict=True)):
            x = x.take(np.clip(np.arange(-low, size + high), 0, size - 1), axis=axis)
        return np.asarray(x)
    if mode == "constant":
        return np.pad(x[cut], grown, constant_values=a["value"] or 0)
    if mode not in _PAD_MODES:
        raise UnsupportedUseError(f"mode {mode!r} is not supported")
    return np.pad(x[cut], grown, mode=_PAD_MODES[mode])  # type: ignore[call-overload,no-any-return]


def diff(a: Args) -> Array:
    x, dim = a["self"], a["dim"]
    if a["n"] == 0:
        return np.asarray(x)
    joined = [part for part in (a["prepend"], x, a["append"]) if part is not None]
    x = np.concatenate(joined, axis=dim) if len(joined) > 1 else x
    for _ in range(min(a["n"], x.shape[dim])):
        after, before = (
            x.take(np.arange(start, x.shape[dim] - 1 + start), axis=dim) for start in (1, 0)
        )
        x = after != before if x.dtype == np.bool_ else after - before
    return np.asarray(x)


def one_hot(a: Args) -> Array:
    index, count = a["self"], a["num_classes"]
    count = int(index.max()) + 1 if count == -1 else count
    return np.asarray((index[..., None] == np.arange(count)).astype(np.int64))


def roll(a: Args) -> Array:
    dims = a["dims"] if isinstance(a["dims"], tuple) else (a["dims"],)
    return np.roll(a["self"], a["shifts"], dims) if dims else np.roll(a["self"], a["shifts"])


def repeat(a: Args) -> Array:
    times = a["repeats"] if "repeats" in a else a["dims"]
    return np.tile(a["self"], times)


def pixel_shuffle(a: Args) -> Array:
    x, factor = a["self"], a["upscale_factor"]
    *lead, channels, height, width = x.shape
    split = x.reshape(*lead, channels // factor**2, factor, factor, height, width)
    rank = len(lead)
    order = (*range(rank + 1), rank + 3, rank + 1, rank + 4, rank + 2)
    return np.asarray(
        split.transpose(order).reshape(
            *lead, channels // factor**2, height * factor, width * factor
        )
    )


def meshgrid(a: Args) -> tuple[Array, ...]:
    indexing = a.get("indexing", "ij")
    return tuple(np.meshgrid(*(np.atleast_1d(t) for t in a["tensors"]), indexing=indexing))


def embedding(a: Args) -> Any:
    return a["weight"][a["indices"]]


def index(a: Args) -> Any:
    return a["self"][numpy_index(a["indices"])]


def index_select(a: Args) -> Any:
    x, index = a["self"], np.atleast_1d(a["index"])
    return np.take(x, index, axis=a["dim"]) if x.ndim else x


def stack(a: Args) -> Any:
    return np.stack(a["tensors"], axis=a["dim"])


def flip(a: Args) -> Any:
    return np.flip(a["self"], a["dims"]).copy()


def repeat_interleave(a: Args) -> Any:
    if "self" not in a:
        return np.repeat(np.arange(a["repeats"].size), a["repeats"])
    return np.repeat(a["self"], a["repeats"], a["dim"])


def nonzero(a: Args) -> Any:
    """Return the index of each nonzero element as a row; empty rows for a 0-dim tensor."""
    x = a["self"]
    return np.argwhere(x) if x.ndim else np.zeros((int(bool(x)), 0), np.int64)


def nonzero_static(a: Args) -> Any:
    """Return the first ``size`` rows of ``nonzero``, padded with ``fill_value``."""
    rows, size = nonzero(a), int(a["size"])
    if size * max(rows.shape[1], 1) > MAX_RESULT_ELEMENTS:
        raise UnsupportedUseError(f"a result of {size} rows is too large")
    result = np.full((size, rows.shape[1]), a["fill_value"], np.int64)
    result[: len(rows)] = rows[:size]
    return result


def nonzero_places(a: Args) -> Any:
    return np.nonzero(np.atleast_1d(a["self"]))


def masked_select(a: Args) -> Any:
    x, mask = np.broadcast_arrays(a["self"], a["mask"])
    return x[mask]


def fill_diagonal(a: Args) -> Any:
    filled = a["self"].copy()
    np.fill_diagonal(filled, a["fill_value"], wrap=bool(a["wrap"]))
    return filled


def tril(a: Args) -> Any:
    return np.tril(a["self"], a["diagonal"])


def triu(a: Args) -> Any:
    return np.triu(a["self"], a["diagonal"])


def padding(mode: str) -> Rule:
    return lambda a: pad({"self": a["self"], "pad": a["padding"], "mode": mode})


def padding_backward(mode: str) -> Rule:
    """Return the gradient; padding the elements' numbers gives the source of each element."""

    def rule(a: Args) -> Array:
        x, rank = a["self"], len(a["padding"]) // 2
        plane = x.shape[-rank:]
        numbers = np.arange(math.prod(plane)).reshape(plane)
        source = pad({"self": numbers, "pad": a["padding"], "mode": mode}).ravel()
        grad = a["grad_output"].reshape(-1, source.size)
        result = np.zeros((grad.shape[0], numbers.size))
        for row, values in zip(result, grad, strict=True):
            np.add.at(row, source, values)
        return result.reshape(x.shape)

    return rule
