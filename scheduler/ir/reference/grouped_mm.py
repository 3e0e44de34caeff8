"""Reference of grouped matrix products: each group of rows has its own matrix."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from scheduler.ir.reference.rule import Args, Array, Result


def _groups(ends: Array, size: int) -> Iterator[tuple[int, slice]]:
    """Yield each group's number and slice, from the groups' ends along an axis of this size."""
    start = 0
    for group, end in enumerate(np.asarray(ends).tolist()):
        yield group, slice(start, min(max(end, start), size))
        start = min(max(end, start), size)


def rows_by_group(a: Args) -> Result:
    """[S, K] x [E, K, N] → [S, N]: rows up to ``offs[e]`` times matrix e; 0 for ungrouped rows."""
    return _rows(np.asarray(a["input"]), np.asarray(a["weight"]), a["offs"])


def _rows(x: Array, y: Array, ends: Array) -> Array:
    made = np.zeros((x.shape[0], y.shape[-1]), np.result_type(x, y))
    for group, place in _groups(ends, x.shape[0]):
        made[place] = x[place] @ y[group]
    return made


def grouped_mm(a: Args) -> Result:
    """torch's four forms: groups of rows, of columns, of the summed axis, or a batch."""
    x, y, ends = np.asarray(a["self"]), np.asarray(a["mat2"]), a["offs"]
    if x.ndim == y.ndim == 3:
        made = x @ y
    elif y.ndim == 3:
        made = _rows(x, y, ends)
    elif x.ndim == 3:
        made = np.swapaxes(_rows(y.T, np.swapaxes(x, 1, 2), ends), 0, 1)
    else:
        parts = [x[:, place] @ y[place] for _, place in _groups(ends, x.shape[1])]
        made = np.stack(parts)
    return made if a["bias"] is None else made + np.asarray(a["bias"])
