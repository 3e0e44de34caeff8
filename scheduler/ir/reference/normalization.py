"""Reference of softmax and of the normalisations."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.ir.reference.matmul import softmax
from scheduler.ir.reference.rule import OWN_DTYPE, Args, Array, UnsupportedUseError, as_float


def softmax_op(a: Args) -> Array:
    x = as_float(a["self"])
    return softmax(x, a["dim"]) if x.ndim else np.ones_like(x)


def log_softmax(a: Args) -> Array:
    x = as_float(a["self"])
    if x.ndim == 0 or x.size == 0:
        return np.zeros_like(x)
    shifted = x - x.max(axis=a["dim"], keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=a["dim"], keepdims=True)))


def _normalized(x: Array, axes: tuple[int, ...], eps: float) -> tuple[Array, Array, Array]:
    """(x - mean) / sqrt(var + eps), the mean, and the factor; the variance is the biased one."""
    mean = x.mean(axis=axes, keepdims=True)
    centred = x - mean
    factor = 1 / np.sqrt(np.mean(centred * centred, axis=axes, keepdims=True) + eps)
    return centred * factor, mean, factor


def _affine(x: Array, weight: Any, bias: Any) -> Array:
    scaled = x if weight is None else x * weight
    return scaled if bias is None else scaled + bias


def _channels(values: Any, rank: int) -> Any:
    """A value for each channel, to go with [N, C, ...]."""
    return None if values is None else values.reshape(1, -1, *(1,) * (rank - 2))


def layer_norm(a: Args) -> tuple[Array, Array, Array]:
    axes = tuple(range(-len(a["normalized_shape"]), 0))
    x, mean, factor = _normalized(a["input"], axes, a["eps"])
    return _affine(x, a["weight"], a["bias"]), mean, factor


def rms_norm(a: Args) -> Array:
    x = a["input"]
    eps = a["eps"]
    if eps is None:
        # torch: the machine epsilon (twice the unit roundoff) of the type that it computes in.
        if a[OWN_DTYPE] is None:
            raise UnsupportedUseError("eps by default, type not known")
        eps = 2 * a[OWN_DTYPE].compute.eps
    axes = tuple(range(-len(a["normalized_shape"]), 0))
    mean_square = (x * x).mean(axis=axes, keepdims=True)
    return _affine(x / np.sqrt(mean_square + eps), a["weight"], None)


def group_norm(a: Args) -> tuple[Array, Array, Array]:
    x = a["input"]
    groups = a["num_groups"] if "num_groups" in a else a["group"]
    batch, channels = x.shape[:2]
    grouped, mean, factor = _normalized(x.reshape(batch, groups, -1), (2,), a["eps"])
    result = _affine(
        grouped.reshape(batch, channels, *x.shape[2:]),
        _channels(a["weight"], x.ndim),
        _channels(a["bias"], x.ndim),
    )
    return result, mean[..., 0], factor[..., 0]


def batch_norm(a: Args) -> Array:
    x = a["input"]
    if a.get("training", False):
        raise UnsupportedUseError("training updates its statistics")
    mean, variance, weight, bias = (
        _channels(a[name], x.ndim) for name in ("running_mean", "running_var", "weight", "bias")
    )
    return _affine((x - mean) / np.sqrt(variance + a["eps"]), weight, bias)


def native_batch_norm(a: Args) -> tuple[Array, Array, Array]:
    # In inference the saved statistics are empty.
    return batch_norm(a), np.empty(0), np.empty(0)


def batch_norm_of_batch(a: Args) -> tuple[Array, Array, Array]:
    """Statistics of the batch itself, where there are no running ones to update."""
    if "running_mean" in a:
        return native_batch_norm(a)
    x = a["input"]
    normal, mean, factor = _normalized(x, (0, *range(2, x.ndim)), a["eps"])
    weight, bias = _channels(a["weight"], x.ndim), _channels(a["bias"], x.ndim)
    return _affine(normal, weight, bias), mean.ravel(), factor.ravel()


def instance_norm(a: Args) -> Array:
    x = a["input"]
    if not a["use_input_stats"]:
        return batch_norm(a)
    normal, _, _ = _normalized(x, tuple(range(2, x.ndim)), a["eps"])
    return _affine(normal, _channels(a["weight"], x.ndim), _channels(a["bias"], x.ndim))


def layer_norm_op(a: Args) -> Any:
    return layer_norm(a)[0]


def group_norm_op(a: Args) -> Any:
    return group_norm(a)[0]
