"""Reference of activation functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from scheduler.ir.numerics import erf, sigmoid
from scheduler.ir.reference.rule import Args, Array, as_float

_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def logaddexp(a: Args) -> Array:
    x, y = as_float(a["self"]), as_float(a["other"])
    if np.iscomplexobj(x) or np.iscomplexobj(y):
        return complex_logaddexp(x, y)
    return np.asarray(np.logaddexp(x, y))


def complex_logaddexp(x: Array, y: Array) -> Array:
    """log(exp(x) + exp(y)) of complex numbers, relative to the one with the greater real part."""
    low, high = np.where(x.real < y.real, x, y), np.where(x.real < y.real, y, x)
    result = high + np.log(1 + np.exp(low - high))
    endless = np.isinf(low.real) & (low.real == high.real)
    ends = np.where(low.real < 0, low, np.log(np.exp(low) + np.exp(high)))
    result = np.where(endless, ends, result)
    nan = complex(np.nan, np.nan)
    return np.asarray(np.where(np.isnan(x) | np.isnan(y), nan, result))


def relu(a: Args) -> Array:
    return np.asarray(np.maximum(a["self"], 0))


def relu6(a: Args) -> Array:
    return np.asarray(np.clip(a["self"], 0, 6))


def silu(a: Args) -> Array:
    x = as_float(a["self"])
    return np.asarray(x * sigmoid(x))


def _hard_sigmoid(x: Array) -> Array:
    return np.clip(x + 3.0, 0.0, 6.0) / 6.0


def hardsigmoid(a: Args) -> Array:
    return _hard_sigmoid(as_float(a["self"]))


def hardswish(a: Args) -> Array:
    x = as_float(a["self"])
    return np.asarray(x * _hard_sigmoid(x))


def _softplus(x: Array, beta: float, threshold: float) -> Array:
    """log(1 + exp(beta x)) / beta; x itself above the threshold."""
    scaled = as_float(x) * beta
    soft = (np.maximum(scaled, 0) + np.log1p(np.exp(-np.abs(scaled)))) / beta
    return np.where(scaled > threshold, x, soft)


def softplus(a: Args) -> Any:
    return _softplus(a["self"], a["beta"], a["threshold"])


def mish(a: Args) -> Array:
    x = as_float(a["self"])
    return np.asarray(x * np.tanh(_softplus(x, 1.0, np.inf)))


def log_sigmoid(a: Args) -> Array:
    return -_softplus(-as_float(a["self"]), 1.0, np.inf)


def gelu(a: Args) -> Array:
    """Both forms: x Φ(x), and Hendrycks' tanh approximation."""
    x = a["self"]
    if a["approximate"] == "tanh":
        return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))
    return np.asarray(0.5 * x * (1 + erf(x * math.sqrt(0.5))))


def _elu(x: Array, alpha: float, scale: float = 1.0, input_scale: float = 1.0) -> Array:
    negative = scale * alpha * np.expm1(np.minimum(x * input_scale, 0))
    return np.where(x > 0, scale * x, negative)


def elu(a: Args) -> Any:
    return _elu(a["self"], a["alpha"], a["scale"], a["input_scale"])


def selu(a: Args) -> Array:
    return _elu(as_float(a["self"]), _SELU_ALPHA, _SELU_SCALE)


def celu(a: Args) -> Any:
    return np.where(
        a["self"] > 0, a["self"], a["alpha"] * np.expm1(np.minimum(a["self"] / a["alpha"], 0))
    )


def leaky_relu(a: Args) -> Any:
    return np.where(a["self"] > 0, a["self"], a["self"] * a["negative_slope"])


def prelu(a: Args) -> Any:
    x, weight = a["self"], a["weight"]
    if weight.size == 1:
        weight = weight.reshape(())
    elif x.ndim > 1:
        weight = weight.reshape(1, -1, *(1,) * (x.ndim - 2))
    return np.where(x > 0, x, weight * x)


def prelu_kernel(a: Args) -> Any:
    return np.where(a["self"] > 0, a["self"], a["weight"] * a["self"])


def hardtanh(a: Args) -> Any:
    return np.clip(a["self"], a["min_val"], a["max_val"])


def threshold(a: Args) -> Any:
    return np.where(a["self"] <= a["threshold"], a["value"], a["self"])


def hardshrink(a: Args) -> Any:
    return np.where(np.abs(a["self"]) <= a["lambd"], 0.0, a["self"])


def softshrink(a: Args) -> Any:
    return np.sign(a["self"]) * np.maximum(np.abs(a["self"]) - a["lambd"], 0)


def glu(a: Args) -> Any:
    first, second = np.split(a["self"], 2, axis=a["dim"])
    return first * sigmoid(second)
