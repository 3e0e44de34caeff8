"""Reference of scans, and of integrals by the trapezoidal rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scheduler.ir.reference.activations import complex_logaddexp
from scheduler.ir.reference.rule import Args, Array, Rule, as_float, is_float, is_inexact


def cummax_or_cummin(join: np.ufunc, at_least: Callable[[Any, Any], Any]) -> Rule:
    """Return the running maximum (minimum) and its last position; for NaN the last NaN's."""

    def rule(a: Args) -> tuple[Array, Array]:
        x = a["self"]
        if x.ndim == 0:
            return x.copy(), np.zeros((), np.int64)
        values = join.accumulate(x, axis=a["dim"]) if x.size else x.copy()
        rows, best = np.moveaxis(x, a["dim"], 0), np.moveaxis(values, a["dim"], 0)
        found = at_least(rows[1:], best[:-1])
        if is_float(x):
            found = found | np.isnan(rows[1:])
        steps = np.arange(1, len(rows)).reshape(-1, *(1,) * (rows.ndim - 1))
        places = np.zeros(rows.shape, np.int64)
        places[1:] = np.maximum.accumulate(np.where(found, steps, 0), axis=0)
        return values, np.moveaxis(places, 0, a["dim"])

    return rule


def logcumsumexp(a: Args) -> Array:
    x = as_float(a["self"])
    if x.ndim == 0 or not x.size:
        return x.copy()
    if not np.iscomplexobj(x):
        return np.asarray(np.logaddexp.accumulate(x, axis=a["dim"]))
    made = x.copy()
    rows = np.moveaxis(made, a["dim"], 0)
    for n in range(1, len(rows)):
        rows[n] = complex_logaddexp(rows[n - 1], rows[n])
    return made


def _areas(a: Args) -> Array:
    """Return twice the areas, with width 1 without ``x``; integers in their own type, as torch."""
    y, dim = a["y"], a["dim"]
    rows = np.moveaxis(y, dim, -1)
    both = rows[..., :-1] + rows[..., 1:]
    if "x" not in a:
        return np.asarray(both)
    x = a["x"]
    wide = x if x.ndim == 1 else np.moveaxis(x.reshape((1,) * (y.ndim - x.ndim) + x.shape), dim, -1)
    return np.asarray(both * np.diff(wide, axis=-1))


def _summed(areas: Array) -> Array:
    return areas if is_inexact(areas) else areas.astype(np.int64)


def trapezoid(a: Args) -> Array:
    return np.asarray(_summed(_areas(a)).sum(axis=-1) * _half(a))


def cumulative_trapezoid(a: Args) -> Array:
    return np.moveaxis(np.cumsum(_summed(_areas(a)), axis=-1) * _half(a), -1, a["dim"])


def _half(a: Args) -> Any:
    return a.get("dx", 1) / 2
