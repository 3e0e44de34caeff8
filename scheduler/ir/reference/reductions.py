"""Reference of reductions, norms, and cumulative sums and products."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from scheduler.ir.reference.rule import (
    Args,
    Array,
    Result,
    Rule,
    as_float,
    axis_args,
    compute_dtype,
    is_float,
    is_inexact,
)


def _converted(a: Args) -> Array:
    """Return the input in the requested type; integers and booleans are summed as int64."""
    x: Array = a["self"]
    if a.get("dtype") is not None:
        return x.astype(compute_dtype(a["dtype"]))
    return x if is_inexact(x) else x.astype(np.int64)


def max_or_min(reduce: Callable[..., Any], locate: Callable[..., Any], join: Any) -> Rule:
    def rule(a: Args) -> Result:
        x = a["self"]
        if "other" in a:
            return join(x, a["other"])
        if "dim" not in a:
            return reduce(x)
        if x.ndim == 0:
            return x.copy(), np.zeros((), dtype=np.int64)
        keep = bool(a["keepdim"])
        return (
            reduce(x, axis=a["dim"], keepdims=keep),
            np.asarray(locate(x, axis=a["dim"], keepdims=keep), dtype=np.int64),
        )

    return rule


def arg_reduce(locate: Callable[..., Any]) -> Rule:
    """Index of the extreme value; NumPy, like torch, takes the first one, and NaN before all."""

    def rule(a: Args) -> Array:
        x = a["self"]
        if a["dim"] is None:
            index = np.asarray(locate(x), dtype=np.int64)
            return index.reshape((1,) * x.ndim) if a["keepdim"] else index
        if x.ndim == 0:
            return np.zeros((), dtype=np.int64)
        return np.asarray(locate(x, axis=a["dim"], keepdims=a["keepdim"]), dtype=np.int64)

    return rule


def variance(a: Args) -> Array:
    if "correction" in a:
        correction = 1 if a["correction"] is None else a["correction"]
    else:
        correction = 1 if a["unbiased"] else 0
    x, over = a["self"], axis_args(a)
    centred = x - mean({**a, "keepdim": True})
    squares = np.sum((centred * np.conj(centred)).real, **over)
    return np.asarray(np.true_divide(squares, max(0, _count(x, over) - correction)))


def mean(a: Args) -> Array:
    x, over = _converted(a), axis_args(a)
    return np.asarray(np.true_divide(np.sum(x, **over), _count(x, over)))


def _count(x: Array, over: dict[str, Any]) -> int:
    """Return the number of elements reduced to one."""
    return math.prod(x.shape[axis] for axis in over["axis"])


def scan(function: Callable[..., Any]) -> Rule:
    def rule(a: Args) -> Array:
        x = _converted(a)
        return np.asarray(function(x, axis=a["dim"])) if x.ndim else x.copy()

    return rule


def logsumexp(a: Args) -> Array:
    x = as_float(a["self"])
    over = axis_args(a)
    highest = x.real.max(axis=over["axis"], keepdims=True, initial=-np.inf)
    highest = np.where(np.isfinite(highest), highest, 0.0)
    total = np.log(np.exp(x - highest).sum(axis=over["axis"], keepdims=True)) + highest
    return np.asarray(total if over["keepdims"] else total.squeeze(over["axis"]))


def norm(a: Args) -> Array:
    order = a["ord"] if "ord" in a else a["p"]
    order = 2 if order is None else order
    x, over = np.abs(as_float(a["self"])), axis_args(a)
    if order == np.inf:
        return np.asarray(x.max(**over, initial=0))
    if order == -np.inf:
        return np.asarray(x.min(**over))
    if order == 0:
        return np.asarray((x != 0).sum(**over).astype(np.float64))
    return np.asarray((x**order).sum(**over) ** (1 / order))


def reduction(function: Callable[..., Any]) -> Rule:
    """Return a NumPy reduction of the elements as they are."""
    return lambda a: np.asarray(function(a["self"], **axis_args(a)))


def sum_like(function: Callable[..., Any]) -> Rule:
    """Return a NumPy reduction of the elements in the requested type, else in a sum's type."""
    return lambda a: np.asarray(function(_converted(a), **axis_args(a)))


sum_op, prod = sum_like(np.sum), sum_like(np.prod)
amax, amin = reduction(np.max), reduction(np.min)
any_op, all_op = reduction(np.any), reduction(np.all)


def std(a: Args) -> Any:
    return np.sqrt(variance(a))


def var_mean(a: Args) -> Any:
    return (variance(a), mean(a))


def std_mean(a: Args) -> Any:
    return (np.sqrt(variance(a)), mean(a))


def nansum(a: Args) -> Any:
    x = a["self"]
    if a["dtype"] is not None:
        x = x.astype(compute_dtype(a["dtype"]))
    x = x if is_float(x) else x.astype(np.int64)
    return np.asarray(np.nansum(x, **axis_args(a)))


def nanmean(a: Args) -> Any:
    x = as_float(a["self"])
    numbers = (~np.isnan(x)).sum(**axis_args(a))
    return np.asarray(np.true_divide(np.nansum(x, **axis_args(a)), numbers))


def frobenius_norm(a: Args) -> Array:
    return norm({**a, "ord": 2})
