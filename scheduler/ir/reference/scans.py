"""Reference of scans, of integrals by the trapezoidal rule, and of derivatives by finite
differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from scheduler.ir.reference.activations import complex_logaddexp
from scheduler.ir.reference.rule import (
    Args,
    Array,
    Rule,
    UnsupportedUseError,
    as_float,
    is_float,
    is_inexact,
)


def cummax_or_cummin(join: np.ufunc, at_least: Callable[[Any, Any], Any]) -> Rule:
    """Return the running maximum (minimum) and its last position; for NaN the last NaN's."""

    def rule(a: Args) -> tuple[Array, Array]:
        x = a["self"]
        if x.ndim == 0:
            return x.copy(), np.zeros((), np.int64)
        values = join.accumulate(x, axis=a["dim"]) if x.size else x.copy()
        rows, best = np.moveaxis(x, a["dim"], 0), np.moveaxis(values, a["dim"], 0)
        is_new = at_least(rows[1:], best[:-1])
        if is_float(x):
            is_new = is_new | np.isnan(rows[1:])
        steps = np.arange(1, len(rows)).reshape(-1, *(1,) * (rows.ndim - 1))
        positions = np.zeros(rows.shape, np.int64)
        positions[1:] = np.maximum.accumulate(np.where(is_new, steps, 0), axis=0)
        return values, np.moveaxis(positions, 0, a["dim"])

    return rule


def logcumsumexp(a: Args) -> Array:
    x = as_float(a["self"])
    if x.ndim == 0 or not x.size:
        return x.copy()
    if not np.iscomplexobj(x):
        return np.asarray(np.logaddexp.accumulate(x, axis=a["dim"]))
    result = x.copy()
    rows = np.moveaxis(result, a["dim"], 0)
    for n in range(1, len(rows)):
        rows[n] = complex_logaddexp(rows[n - 1], rows[n])
    return result


def _areas(a: Args) -> Array:
    """Return twice the areas, with width 1 without ``x``; integers in their own type, as torch."""
    y, dim = a["y"], a["dim"]
    rows = np.moveaxis(y, dim, -1)
    both = rows[..., :-1] + rows[..., 1:]
    if "x" not in a:
        return np.asarray(both)
    x = a["x"]
    positions = (
        x if x.ndim == 1 else np.moveaxis(x.reshape((1,) * (y.ndim - x.ndim) + x.shape), dim, -1)
    )
    return np.asarray(both * np.diff(positions, axis=-1))


def _summed(areas: Array) -> Array:
    return areas if is_inexact(areas) else areas.astype(np.int64)


def trapezoid(a: Args) -> Array:
    return np.asarray(_summed(_areas(a)).sum(axis=-1) * _half(a))


def cumulative_trapezoid(a: Args) -> Array:
    return np.moveaxis(np.cumsum(_summed(_areas(a)), axis=-1) * _half(a), -1, a["dim"])


def _half(a: Args) -> Any:
    return a.get("dx", 1) / 2


def gradient(a: Args) -> tuple[Array, ...]:
    """Return a result for each requested dimension."""
    x, spacing, dim, order = a["self"], a.get("spacing"), a["dim"], a["edge_order"]
    dims = range(x.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    steps = spacing if isinstance(spacing, tuple | list) else [spacing] * len(dims)
    if order not in (1, 2) or len(steps) != len(dims):
        raise UnsupportedUseError(
            f"a gradient with edge_order={order} and {len(steps)} spacings is not supported"
        )
    return tuple(_along(x, d, h, order) for d, h in zip(dims, steps, strict=True))


def _along(x: Array, dim: int, spacing: Any, order: int) -> Array:
    line = np.moveaxis(x, dim, 0)
    if len(line) < order + 1:
        raise UnsupportedUseError(
            f"a gradient with edge_order={order} along a dimension of {len(line)} is not supported"
        )
    if np.ndim(spacing):
        positions: Any = as_float(spacing)
        result = np.gradient(as_float(line), positions, axis=0, edge_order=2 if order == 2 else 1)
        return np.moveaxis(result, 0, dim)
    step = 1 if spacing is None else spacing
    # Differences and doubles of integers wrap in their own type.
    inner = as_float(line[2:] - line[:-2]) / step / 2
    if order == 1:
        ends = [as_float(line[i + 1 : i + 2] - line[i : i + 1]) for i in (0, len(line) - 2)]
    else:
        f, twice = as_float(line), as_float(2 * line)
        ends = [-1.5 * f[:1] + twice[1:2] - 0.5 * f[2:3]]
        ends.append(0.5 * f[-3:-2] - twice[-2:-1] + 1.5 * f[-1:])
    return np.moveaxis(np.concatenate([ends[0] / step, inner, ends[1] / step]), 0, dim)
