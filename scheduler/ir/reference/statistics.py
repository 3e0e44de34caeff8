"""Reference of counts and extremes."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.ir.reference.rule import (
    Args,
    Array,
    axes,
)


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
