"""Reference of window functions, and of weight normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.ir.reference.rule import Args, Array, Rule, UnsupportedUseError, as_float
from scheduler.limits import MAX_RESULT_ELEMENTS


def _positions(a: Args) -> Any:
    """Return positions from 0 to 1, or to below 1 for a periodic window."""
    length = a["window_length"]
    if not 0 <= length <= MAX_RESULT_ELEMENTS:
        raise UnsupportedUseError(f"a window of {length} elements is too large")
    parts = length if a.get("periodic", True) else length - 1
    return np.arange(length) / max(parts, 1)


def _whole(a: Args, values: Any) -> Any:
    return np.ones(1) if a["window_length"] == 1 else values


def cosines(alpha: float, beta: float, third: float = 0.0) -> Rule:
    def rule(a: Args) -> Any:
        turn = 2 * np.pi * _positions(a)
        first, second = a.get("alpha", alpha), a.get("beta", beta)
        return _whole(a, first - second * np.cos(turn) + third * np.cos(2 * turn))

    return rule


def bartlett(a: Args) -> Any:
    return _whole(a, 1 - np.abs(2 * _positions(a) - 1))


def kaiser(a: Args) -> Any:
    beta = a.get("beta", 12.0)
    inside = np.maximum(1 - (2 * _positions(a) - 1) ** 2, 0)
    return _whole(a, np.i0(beta * np.sqrt(inside)) / np.i0(beta))


def _other_dims(v: Array, dim: int) -> tuple[int, ...]:
    return tuple(d for d in range(v.ndim) if dim == -1 or d != dim % v.ndim)


def norm_except(a: Args) -> Any:
    v, power = as_float(a["v"]), a["pow"]
    sums = (np.abs(v) ** power).sum(axis=_other_dims(v, a["dim"]), keepdims=a["dim"] != -1)
    return np.asarray(sums ** (1 / power))


def weight_norm_interface(a: Args) -> Any:
    v = as_float(a["v"])
    norms = np.sqrt((v * v).sum(axis=_other_dims(v, a["dim"]), keepdims=True))
    return v * (a["g"] / norms), norms


def weight_norm(a: Args) -> Any:
    return weight_norm_interface(a)[0]
