"""Reference of embedding_bag and of reductions of segments."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.ir.dtypes import DType
from scheduler.ir.reference.rule import OWN_DTYPE, Args, Array, UnsupportedUseError

_SUM, _MEAN, _MAX = 0, 1, 2


def embedding_bag(a: Args) -> tuple[Array, ...]:
    """Return the bags, and what torch saves for their gradient."""
    weight, indices, mode = a["weight"], a["indices"].reshape(-1), a["mode"]
    padding = a.get("padding_idx", -1)
    bags = a["offsets"].shape[0] - int(bool(a["include_last_offset"]))
    bag = np.searchsorted(np.sort(a["offsets"]), np.arange(len(indices)), side="right") - 1
    bag = np.minimum(bag, bags - 1)
    used = (bag >= 0) & ((indices != padding) | (padding < 0))
    rows = weight[indices]
    if a["per_sample_weights"] is not None:
        rows = rows * a["per_sample_weights"][:, None]
    result = np.full((bags, weight.shape[1]), -np.inf if mode == _MAX else 0.0)
    combine = np.maximum if mode == _MAX else np.add
    combine.at(result, bag[used], rows[used])
    counts = np.bincount(bag[used], minlength=bags)
    if mode == _MEAN:
        result = result / np.maximum(counts, 1)[:, None]
    result = np.where(counts[:, None] > 0, result, 0.0)
    if mode == _SUM:
        # What torch's shortest way of adding up leaves out; f64 has no such way.
        short = padding < 0 and a[OWN_DTYPE] in (DType.F32, DType.F16)
        nothing = np.zeros(bags, dtype=np.int64)
        return result, bag[: 0 if short else None], nothing, nothing
    if mode == _MEAN:
        return result, bag, counts, counts
    return result, bag, counts, _first_maxima(result, rows, bag, used, indices)


def embedding_bag_forward(a: Args) -> tuple[Array, ...]:
    """As ``embedding_bag``, with as many bag sizes as offsets, as in exported graphs."""
    result, bag, counts, maxima = embedding_bag(a)
    padding = np.zeros(a["offsets"].shape[0] - len(counts), dtype=np.int64)
    return result, bag, np.concatenate([counts, padding]), maxima


def _first_maxima(result: Array, rows: Array, bag: Array, used: Array, indices: Array) -> Array:
    """Return the row of each maximum, the first of equal ones; 0 for an empty bag."""
    first = np.full(result.shape, len(indices), dtype=np.int64)
    entries, columns = np.nonzero((rows == result[bag]) & used[:, None])
    np.minimum.at(first, (bag[entries], columns), entries)
    return np.where(first < len(indices), np.append(indices, 0)[first], 0)


def composite_embedding_bag(a: Args) -> tuple[Array, ...]:
    """The op that models call: its padding index may count from the end."""
    padding, rows = a.get("padding_idx"), len(a["weight"])
    if padding is None:
        return embedding_bag_forward({**a, "padding_idx": -1})
    return embedding_bag_forward({**a, "padding_idx": padding % rows if rows else padding})


def segment_reduce(a: Args) -> Array:
    """Reduce each segment along an axis, starting with ``initial``."""
    data, axis, reduce = np.asarray(a["data"]), a["axis"], a["reduce"]
    if reduce not in _SEGMENTS:
        raise UnsupportedUseError(f"a reduction by {reduce!r} is not supported")
    combine, nothing = _SEGMENTS[reduce]
    batch = data.shape[:axis]
    data = data.reshape(-1, *data.shape[axis:])
    lengths = _segment_lengths(a)
    start = nothing if a["initial"] is None else float(a["initial"])
    result = np.full((len(data), lengths.shape[1], *data.shape[2:]), start)
    for line, (rows, counts) in enumerate(zip(data, lengths, strict=True)):
        segment = np.repeat(np.arange(len(counts)), counts)
        combine.at(result[line], segment, rows[: len(segment)])
        if reduce == "mean":
            shape = (-1,) + (1,) * (rows.ndim - 1)
            empty = (counts == 0).reshape(shape)
            empty_value = np.nan if a["initial"] is None else start
            result[line] = np.where(
                empty, empty_value, result[line] / np.maximum(counts, 1).reshape(shape)
            )
    return result.reshape(*batch, *result.shape[1:])


_SEGMENTS: dict[Any, tuple[np.ufunc, float]] = {
    "sum": (np.add, 0.0),
    "mean": (np.add, 0.0),
    "prod": (np.multiply, 1.0),
    "max": (np.maximum, -np.inf),
    "min": (np.minimum, np.inf),
}


def _segment_lengths(a: Args) -> Array:
    """Return the lengths of the segments, one row per line of the data."""
    if a["lengths"] is not None:
        lengths = a["lengths"]
    elif a["offsets"] is not None:
        lengths = np.diff(a["offsets"], axis=-1)
    else:
        raise UnsupportedUseError("segments given by indices are not supported")
    return np.asarray(np.maximum(lengths, 0).reshape(-1, lengths.shape[-1]))
