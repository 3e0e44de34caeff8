"""Reference of softmax, and of normalisations of activations and weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.ir.reference.creation import convert
from scheduler.ir.reference.rule import (
    OWN_DTYPE,
    Args,
    Array,
    Rule,
    UnsupportedUseError,
    as_float,
)


def _typed_input(a: Args) -> Array:
    """Return the tensor in the requested type; complex numbers lose their imaginary part."""
    return as_float(convert(a["self"], a.get("dtype")))


def softmax(x: Array, axis: int) -> Array:
    """Return exp(x) divided by its sum, shifted by the maximum."""
    if x.size == 0:
        return x.copy()
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return np.asarray(powers / powers.sum(axis=axis, keepdims=True))


def softmax_op(a: Args) -> Array:
    x = _typed_input(a)
    return softmax(x, a["dim"]) if x.ndim else np.ones_like(x)


def log_softmax(a: Args) -> Array:
    x = _typed_input(a)
    if x.ndim == 0 or x.size == 0:
        return np.zeros_like(x)
    shifted = x - x.max(axis=a["dim"], keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=a["dim"], keepdims=True)))


def _normalized(x: Array, axes: tuple[int, ...], eps: float) -> tuple[Array, Array, Array]:
    """Return (x - mean) / sqrt(var + eps), the mean, and the factor; the variance is biased."""
    mean = x.mean(axis=axes, keepdims=True)
    centred = x - mean
    factor = 1 / np.sqrt(np.mean(centred * centred, axis=axes, keepdims=True) + eps)
    return centred * factor, mean, factor


def _affine(x: Array, weight: Any, bias: Any) -> Array:
    scaled = x if weight is None else x * weight
    return scaled if bias is None else scaled + bias


def _channels(values: Any, rank: int) -> Any:
    """Reshape per-channel values to broadcast with [N, C, ...]."""
    return None if values is None else values.reshape(1, -1, *(1,) * (rank - 2))


def layer_norm(a: Args) -> tuple[Array, Array, Array]:
    axes = tuple(range(-len(a["normalized_shape"]), 0))
    x, mean, factor = _normalized(a["input"], axes, a["eps"])
    return _affine(x, a["weight"], a["bias"]), mean, factor


def fused_rms_norm(a: Args) -> tuple[Array, Array]:
    x = a["input"]
    eps = a["eps"]
    if eps is None:
        # torch: the machine epsilon (twice the unit roundoff) of the type that it computes in.
        if a[OWN_DTYPE] is None:
            raise UnsupportedUseError("the default eps of an unknown type is not supported")
        eps = 2 * a[OWN_DTYPE].compute_dtype.eps
    axes = tuple(range(-len(a["normalized_shape"]), 0))
    mean_square = (x * x).mean(axis=axes, keepdims=True)
    factor = 1 / np.sqrt(mean_square + eps)
    return _affine(x * factor, a["weight"], None), factor


def rms_norm(a: Args) -> Array:
    return fused_rms_norm(a)[0]


def group_norm(a: Args) -> tuple[Array, Array, Array]:
    x = a["input"]
    groups = a["num_groups"] if "num_groups" in a else a["group"]
    batch, channels = x.shape[:2]
    group_size = x.size // max(1, batch * groups)
    grouped, mean, factor = _normalized(x.reshape(batch, groups, group_size), (2,), a["eps"])
    result = _affine(
        grouped.reshape(batch, channels, *x.shape[2:]),
        _channels(a["weight"], x.ndim),
        _channels(a["bias"], x.ndim),
    )
    return result, mean[..., 0], factor[..., 0]


def _running_average(running: Any, current: Array, momentum: float) -> Any:
    return None if running is None else (1 - momentum) * running + momentum * current


def _batch_norm(a: Args, training: bool) -> tuple[Any, ...]:
    """(output, mean, inverse deviation, new running mean, new running variance); without training
    the second and third are empty."""
    x = a["input"]
    running_mean, running_var = a.get("running_mean"), a.get("running_var")
    if x.ndim < 2:  # nothing at all: torch lets it pass
        return x, np.empty(0), np.empty(0), running_mean, running_var
    weight, bias = _channels(a["weight"], x.ndim), _channels(a["bias"], x.ndim)
    eps = a["eps"] if "eps" in a else a["epsilon"]
    if not training:
        mean, variance = _channels(running_mean, x.ndim), _channels(running_var, x.ndim)
        output = _affine((x - mean) / np.sqrt(variance + eps), weight, bias)
        return output, np.empty(0), np.empty(0), running_mean, running_var
    axes = (0, *range(2, x.ndim))
    normal, mean, factor = _normalized(x, axes, eps)
    output = _affine(normal, weight, bias)
    if running_mean is None:
        return output, mean.ravel(), factor.ravel(), None, None
    number = x.size // max(1, x.shape[1])
    variance = x.var(axis=axes) * np.divide(number, number - 1)
    momentum = a["momentum"] if "momentum" in a else a["exponential_average_factor"]
    return (
        output,
        mean.ravel(),
        factor.ravel(),
        _running_average(running_mean, mean.ravel(), momentum),
        _running_average(running_var, variance, momentum),
    )


def batch_norm(a: Args) -> Array:
    return np.asarray(_batch_norm(a, bool(a.get("training", False)))[0])


def native_batch_norm(a: Args) -> tuple[Any, ...]:
    return _batch_norm(a, bool(a.get("training", "running_mean" not in a)))[:3]


def functional_batch_norm(a: Args) -> tuple[Any, ...]:
    return _batch_norm(a, bool(a["training"]))


def batch_norm_with_reserve(training: bool | None, functional: bool = False) -> Rule:
    """batch_norm with the reserve of a device's library for the gradient, which is empty here."""

    def rule(a: Args) -> tuple[Any, ...]:
        learns = bool(a["training"]) if training is None else training
        result = _batch_norm(a, learns)
        empty = np.empty(0, dtype=np.uint8)
        return (*result[:3], empty, *(result[3:] if functional else ()))

    return rule


def instance_norm(a: Args) -> Array:
    x = a["input"]
    if not a["use_input_stats"]:
        return np.asarray(_batch_norm(a, False)[0])
    normal, _, _ = _normalized(x, tuple(range(2, x.ndim)), a["eps"])
    return _affine(normal, _channels(a["weight"], x.ndim), _channels(a["bias"], x.ndim))


def layer_norm_op(a: Args) -> Any:
    return layer_norm(a)[0]


def group_norm_op(a: Args) -> Any:
    return group_norm(a)[0]


def softmax_or_zeros(x: Array, axis: int) -> Array:
    """softmax; 0 for rows of only minus infinity."""
    if x.size == 0:
        return x
    highest = x.max(axis=axis, keepdims=True)
    powers = np.exp(x - np.where(highest == -np.inf, 0.0, highest))
    total = powers.sum(axis=axis, keepdims=True)
    return np.asarray(powers / np.where(total == 0, 1.0, total))


def safe_softmax(a: Args) -> Array:
    x = as_float(a["self"])
    return softmax_or_zeros(x, a["dim"]) if x.ndim else np.ones_like(x)


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
