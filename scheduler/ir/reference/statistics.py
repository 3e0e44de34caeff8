"""Reference of counts, extremes, histograms and hashes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from scheduler.ir.encoding import round_to_dtype
from scheduler.ir.reference.rule import (
    OWN_DTYPE,
    Args,
    Array,
    UnsupportedUseError,
    as_float,
    axis_args,
    is_float,
    normalize_dims,
)
from scheduler.limits import MAX_RESULT_ELEMENTS


def aminmax(a: Args) -> tuple[Array, ...]:
    return tuple(np.asarray(f(a["self"], **axis_args(a))) for f in (np.min, np.max))


def count_nonzero(a: Args) -> Array:
    return np.asarray(np.sum(a["self"] != 0, axis=axis_args(a)["axis"], dtype=np.int64))


def histogram(a: Args) -> tuple[Array, Array]:
    """Histogram with given edges, or with a number of bins of equal width."""
    x, bins, span = as_float(a["self"]).reshape(-1), a["bins"], a.get("range")
    weight = None if a["weight"] is None else as_float(a["weight"]).reshape(-1)
    counts, edges = np.histogram(x, bins, span, density=bool(a["density"]), weights=weight)
    return counts.astype(np.float64), edges.astype(np.float64)


def histogramdd(a: Args) -> tuple[Array, ...]:
    """Return the number of points (rows of the last dimension) in each cell, and the edges along
    each coordinate."""
    x = as_float(a["self"])
    points = x.reshape(-1, x.shape[-1])
    weight = None if a["weight"] is None else as_float(a["weight"]).reshape(-1)
    bins, span = a["bins"], a.get("range")
    bins = [bins] * points.shape[1] if isinstance(bins, int) else list(bins)
    cells = math.prod(b if isinstance(b, int) else max(len(b) - 1, 1) for b in bins)
    if cells > MAX_RESULT_ELEMENTS:
        raise UnsupportedUseError(f"a histogram of {cells} cells is too large")
    if any(np.any(np.diff(b) < 0) for b in bins if not isinstance(b, int)):
        raise UnsupportedUseError("the edges of a histogram do not increase")
    pairs: Any = None if span is None else np.reshape(span, (-1, 2)).tolist()
    counts, edges = np.histogramdd(points, bins, pairs, density=bool(a["density"]), weights=weight)
    return counts.astype(np.float64), *(np.asarray(axis, np.float64) for axis in edges)


def histogramdd_counts(a: Args) -> Array:
    return histogramdd(a)[0]


def histogramdd_edges(a: Args) -> tuple[Array, ...]:
    return histogramdd(a)[1:]


def hash_tensor(a: Args) -> Any:
    """Hash the elements' bits as float64 or int64 over the given dimensions; over all without
    any."""
    x = np.asarray(a["self"])
    if a["mode"] != 0 or np.iscomplexobj(x):
        raise UnsupportedUseError(
            "a hash of complex numbers, or by another reduction than xor, is not supported"
        )
    dtype = a[OWN_DTYPE]
    x = x if dtype is None else round_to_dtype(x, dtype)
    widened = x.astype(np.float64) if is_float(x) else x.astype(np.int64)
    axis = normalize_dims(a["dim"], x.ndim)
    return np.bitwise_xor.reduce(widened.view(np.uint64), axis=axis, keepdims=a["keepdim"])


def histc(a: Args) -> Array:
    x, bins = a["self"].reshape(-1), a["bins"]
    if not is_float(x) or bins < 1:
        raise UnsupportedUseError("a histogram of integers, or without bins, is not supported")
    low, high = float(a["min"]), float(a["max"])
    if low == high and x.size:
        low, high = float(x.min()), float(x.max())
    if low == high:
        low, high = low - 1, high + 1
    x = x[(x >= low) & (x <= high)]
    position = np.minimum(((x - low) * bins / (high - low)).astype(np.int64), bins - 1)
    return np.bincount(position, minlength=bins).astype(np.float64)


def bincount(a: Args) -> Any:
    return np.bincount(a["self"], a["weights"], a["minlength"])
