"""Reference of sorting, order statistics and searches."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from scheduler.ir.dtypes import DType
from scheduler.ir.reference.rule import OWN_DTYPE, Args, Array, Rule, as_float, is_float


def _stable_sort(x: Array, axis: int, descending: bool) -> tuple[Array, Array]:
    """Stable sort; NaN counts as the largest, as in torch."""
    if x.ndim == 0:
        return x.copy(), np.zeros((), dtype=np.int64)
    if descending:
        backward = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
        order = x.shape[axis] - 1 - np.flip(backward, axis)
    else:
        order = np.argsort(x, axis=axis, kind="stable")
    return np.take_along_axis(x, order, axis), order.astype(np.int64)


def sort(a: Args) -> Any:
    return _stable_sort(a["self"], a["dim"], a["descending"])


def argsort(a: Args) -> Any:
    return sort(a)[1]


def msort(a: Args) -> Any:
    return _stable_sort(a["self"], 0, False)[0]


def topk(a: Args) -> tuple[Array, Array]:
    """Return sorted results, even if any order is allowed."""
    x, k, axis = a["self"], a["k"], a["dim"]
    values, order = _stable_sort(x, axis, a["largest"])
    if x.ndim == 0:
        return (values, order) if k else (values.reshape(1)[:0], order.reshape(1)[:0])
    first = np.arange(k)
    return values.take(first, axis), order.take(first, axis)


def _take_place(
    sorted_rows: tuple[Array, Array], dim: int, position: Any, keepdim: bool
) -> tuple[Array, ...]:
    """Take the element of each row at its position (with the row's dimension), and its index."""
    if sorted_rows[0].ndim == 0:
        return sorted_rows
    parts = [np.take_along_axis(part, position, dim) for part in sorted_rows]
    return tuple(part if keepdim else part.squeeze(dim) for part in parts)


def kthvalue(a: Args) -> tuple[Array, ...]:
    x, dim = a["self"], a["dim"]
    sorted_rows = _stable_sort(x, dim, False)
    shape = [1 if d == dim % x.ndim else n for d, n in enumerate(x.shape)]
    position = np.full(shape, a["k"] - 1)
    return _take_place(sorted_rows, dim, position, a["keepdim"])


def median(*, ignores_nan: bool) -> Rule:
    """Return the lower median and its index; for rows with NaN the first NaN, or with
    ``ignores_nan`` the median of the other elements."""

    def rule(a: Args) -> Any:
        x = a["self"]
        if "dim" not in a:
            if x.size == 0:
                return np.asarray(np.nan if is_float(x) else 0, x.dtype)
            return _middle(x.reshape(-1), -1, False, ignores_nan)[0]
        return _middle(x, a["dim"], a["keepdim"], ignores_nan)

    return rule


def _middle(x: Array, dim: int, keepdim: bool, ignores_nan: bool) -> tuple[Array, ...]:
    sorted_rows = _stable_sort(x, dim, False)
    if x.ndim == 0:
        return sorted_rows
    length = x.shape[dim]
    nans = np.count_nonzero(np.isnan(x), axis=dim, keepdims=True)
    if ignores_nan:
        position = np.maximum(length - nans - 1, 0) // 2
    else:
        position = np.where(nans > 0, length - nans, (length - 1) // 2)
    return _take_place(sorted_rows, dim, position, keepdim)


def quantile(*, ignores_nan: bool) -> Rule:
    def rule(a: Args) -> Array:
        x, dim, q = as_float(a["self"]), a["dim"], np.asarray(a["q"], np.float64)
        keep = a["keepdim"]
        rank = x.ndim
        if dim is None:
            x, dim, kept_shape = x.reshape(-1), 0, (1,) * rank
        else:
            x = np.moveaxis(np.atleast_1d(x), dim, 0)
            kept_shape = np.expand_dims(x[0], dim % rank).shape if rank else ()
        rows = _quantiles(np.sort(x, axis=0), q.reshape(-1), a, ignores_nan)
        shape = kept_shape if keep else x.shape[1:]
        return rows.reshape((*q.shape, *shape))

    return rule


def _quantiles(x: Array, q: Array, a: Args, ignores_nan: bool) -> Array:
    """Return quantiles, q as the first dimension, along the first dimension of sorted x."""
    # torch computes positions in the tensor's own type, which decides whether they are integers.
    single = a[OWN_DTYPE] is DType.F32 and a["interpolation"] in ("lower", "higher", "nearest")
    position_dtype = np.float32 if single else np.float64
    nans = np.count_nonzero(np.isnan(x), axis=0)
    last = x.shape[0] - 1
    ends = np.maximum(last - nans, 0) if ignores_nan else np.full(nans.shape, last)
    fractions = q.reshape(-1, *(1,) * nans.ndim).astype(position_dtype)
    positions = np.clip(fractions * ends.astype(position_dtype), 0, last).astype(np.float64)
    if not ignores_nan:
        positions = np.where(nans > 0, last, positions)
    roundings: dict[str, Callable[[Array], Array]] = {
        "lower": np.floor,
        "higher": np.ceil,
        "nearest": np.round,
    }
    kind = a["interpolation"]
    if kind in roundings:
        return np.asarray(np.take_along_axis(x, roundings[kind](positions).astype(np.int64), 0))
    low = np.floor(positions)
    weight = np.full(positions.shape, 0.5) if kind == "midpoint" else positions - low
    below = np.take_along_axis(x, low.astype(np.int64), 0)
    above = np.take_along_axis(x, np.ceil(positions).astype(np.int64), 0)
    step = above - below
    between = np.where(weight < 0.5, below + weight * step, above - step * (1 - weight))
    return np.asarray(between)


def mode(a: Args) -> tuple[Array, ...]:
    """Return the most frequent value (the smallest of several), and its last position. NaN equals
    nothing."""
    x, dim = a["self"], a["dim"]
    if x.ndim == 0:
        return x.copy(), np.zeros((), np.int64)
    values, order = _stable_sort(x, dim, False)
    rows = np.moveaxis(values, dim, 0)
    steps = np.arange(len(rows)).reshape(-1, *(1,) * (x.ndim - 1))
    starts = np.zeros(rows.shape, np.int64)  # start of the run of equal elements
    starts[1:] = np.where(rows[1:] != rows[:-1], steps[1:], 0)
    lengths = steps - np.maximum.accumulate(starts, axis=0)
    position = np.expand_dims(lengths.argmax(axis=0), dim % x.ndim)
    return _take_place((values, order), dim, position, a["keepdim"])


def _distinct(x: Array, *, dim: int | None, consecutive: bool) -> tuple[Array, Array, Array]:
    """Return the distinct elements (or slices), the inverse indices, and the counts."""
    moved = x.reshape(-1, 1) if dim is None else np.moveaxis(x, dim, 0)
    count = moved.shape[0]
    flat = moved.reshape(count, math.prod(moved.shape[1:]))
    order = np.arange(count)
    if not consecutive and flat.size:
        order = np.lexsort(flat.T[::-1])  # the first element of a slice is the primary key
    rows = flat[order]
    starts = np.ones(count, bool)
    starts[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    number = np.cumsum(starts) - 1
    inverse = np.empty(count, np.int64)
    inverse[order] = number
    counts = np.bincount(number, minlength=int(starts.sum())).astype(np.int64)
    first = order[starts]
    if dim is None:
        return x.reshape(-1)[first], inverse.reshape(x.shape), counts
    return x.take(first, dim), inverse, counts


def unique(*, consecutive: bool) -> Rule:
    def rule(a: Args) -> tuple[Array, ...]:
        x = a["self"]
        values, inverse, counts = _distinct(x, dim=a.get("dim"), consecutive=consecutive)
        if a.get("dim") is not None:
            return values, inverse, counts
        empty = np.zeros(0, np.int64)
        return (
            values,
            inverse if a.get("return_inverse") else empty,
            counts if a.get("return_counts") else empty,
        )

    return rule


def searchsorted(a: Args) -> Array:
    sequence, value = a["sorted_sequence"], np.asarray(a["self"])
    if a["sorter"] is not None:
        sequence = np.take_along_axis(sequence, a["sorter"], -1)
    right = a["right"] if a["side"] is None else a["side"] == "right"
    return _places(sequence, value, bool(right), a)


def bucketize(a: Args) -> Array:
    return _places(a["boundaries"], np.asarray(a["self"]), bool(a["right"]), a)


def _places(sequence: Array, value: Array, right: bool, a: Args) -> Array:
    """Bisection as in torch: elements not known to come after count as before."""
    values = value.reshape(1) if value.ndim == 0 else value
    common = np.result_type(sequence, values)
    rows = np.broadcast_to(sequence, (*values.shape[:-1], sequence.shape[-1])).astype(common)
    values = values.astype(common)
    low, high = (
        np.zeros(values.shape, np.int64),
        np.full(values.shape, sequence.shape[-1], np.int64),
    )
    while (low < high).any():
        half = low + (high - low) // 2
        middle = np.take_along_axis(rows, np.minimum(half, rows.shape[-1] - 1), -1)
        after = middle > values if right else middle >= values
        open_ = low < high
        low, high = np.where(open_ & ~after, half + 1, low), np.where(open_ & after, half, high)
    return low.reshape(value.shape).astype(np.int32 if a["out_int32"] else np.int64)


def isin(a: Args) -> Array:
    x = a["elements"] if "elements" in a else a["element"]
    tested = a["test_elements"] if "test_elements" in a else a["test_element"]
    return np.asarray(np.isin(x, tested, invert=bool(a["invert"])))
