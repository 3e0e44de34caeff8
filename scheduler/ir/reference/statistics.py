"""Reference of counts and extremes."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.ir.reference.rule import Args, Array, as_float, axes


def _over(a: Args) -> dict[str, Any]:
    return {
        "axis": axes(a["dim"], np.ndim(a["self"])),
        "keepdims": bool(a.get("keepdim", False)),
    }


def aminmax(a: Args) -> tuple[Array, Array]:
    over = _over(a)
    return np.asarray(np.min(a["self"], **over)), np.asarray(np.max(a["self"], **over))


def count_nonzero(a: Args) -> Array:
    return np.asarray(np.sum(a["self"] != 0, axis=_over(a)["axis"], dtype=np.int64))


def histogram(a: Args) -> tuple[Array, Array]:
    """Between edges that are given, or in so many bins of one width."""
    x, bins, span = as_float(a["self"]).reshape(-1), a["bins"], a.get("range")
    weight = None if a["weight"] is None else as_float(a["weight"]).reshape(-1)
    made, edges = np.histogram(x, bins, span, density=bool(a["density"]), weights=weight)
    return made.astype(np.float64), edges.astype(np.float64)
