"""Reference of products of groups of rows, each with a matrix of its own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from scheduler.ir.reference.rule import Args, Array, Result


def _groups(ends: Array, size: int) -> Iterator[tuple[int, slice]]:
    """Each group's number and places, from the ends of the groups along an axis of this size."""
    start = 0
    for group, end in enumerate(np.asarray(ends).tolist()):
        yield group, slice(start, min(max(end, start), size))
        start = min(max(end, start), size)


def rows_by_group(a: Args) -> Result:
    """[S, K] x [E, K, N] → [S, N]: rows up to ``offs[e]`` times matrix e; 0 for rows of none."""
    return _rows(np.asarray(a["input"]), np.asarray(a["weight"]), a["offs"])


def _rows(x: Array, y: Array, ends: Array) -> Array:
    made = np.zeros((x.shape[0], y.shape[-1]), np.result_type(x, y))
    for group, place in _groups(ends, x.shape[0]):
        made[place] = x[place] @ y[group]
    return made


def grouped_mm(a: Args) -> Result:
    """torch's four forms: the groups are of rows, of columns, of what is summed, or whole."""
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
