"""Reference of counts and extremes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from scheduler.ir.reference.rule import Args, Array, UnsupportedUseError, as_float, normalize_dims
from scheduler.limits import MAX_RESULT_ELEMENTS


def _axis_args(a: Args) -> dict[str, Any]:
    return {
        "axis": normalize_dims(a["dim"], np.ndim(a["self"])),
        "keepdims": bool(a.get("keepdim", False)),
    }


def aminmax(a: Args) -> tuple[Array, Array]:
    over = _axis_args(a)
    return np.asarray(np.min(a["self"], **over)), np.asarray(np.max(a["self"], **over))


def count_nonzero(a: Args) -> Array:
    return np.asarray(np.sum(a["self"] != 0, axis=_axis_args(a)["axis"], dtype=np.int64))


def histogram(a: Args) -> tuple[Array, Array]:
    """Histogram with given edges, or with a number of bins of equal width."""
    x, bins, span = as_float(a["self"]).reshape(-1), a["bins"], a.get("range")
    weight = None if a["weight"] is None else as_float(a["weight"]).reshape(-1)
    made, edges = np.histogram(x, bins, span, density=bool(a["density"]), weights=weight)
    return made.astype(np.float64), edges.astype(np.float64)


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
    made, edges = np.histogramdd(points, bins, pairs, density=bool(a["density"]), weights=weight)
    return made.astype(np.float64), *(np.asarray(one, np.float64) for one in edges)


def histogramdd_counts(a: Args) -> Array:
    return histogramdd(a)[0]


def histogramdd_edges(a: Args) -> tuple[Array, ...]:
    return histogramdd(a)[1:]
