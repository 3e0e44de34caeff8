"""Reference of gradients of activation functions, softmax, class losses, normalisations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from scheduler.ir.numerics import erf, sigmoid
from scheduler.ir.reference.rule import Args, Array, Rule, UnsupportedUseError


def _slope(name: str) -> Callable[[Callable[[Array], Any]], Rule]:
    """Make the rule of a gradient from the function's slope at the argument of that name."""

    def decorate(slope: Callable[[Array], Any]) -> Rule:
        return lambda a: a["grad_output"] * slope(np.asarray(a[name], np.float64))

    return decorate


@_slope("output")
def sigmoid_backward(y: Array) -> Any:
    return y * (1 - y)


@_slope("output")
def tanh_backward(y: Array) -> Any:
    return 1 - y * y


@_slope("self")
def silu_backward(x: Array) -> Array:
    s = sigmoid(x)
    return np.asarray(s * (1 + x * (1 - s)))


@_slope("self")
def mish_backward(x: Array) -> Array:
    t = np.tanh(np.logaddexp(0, x))
    return np.asarray(t + x * sigmoid(x) * (1 - t * t))


@_slope("self")
def hardswish_backward(x: Array) -> Array:
    return np.where(x <= -3, 0, np.where(x < 3, x / 3 + 0.5, 1))


def _masked_gradient(a: Args, mask: Array) -> Array:
    """Return the gradient where ``kept`` holds, else 0."""
    grad = a["grad_output"] if "grad_output" in a else a["grad_out"]
    return np.where(mask, grad, np.zeros((), np.asarray(grad).dtype))


def hardsigmoid_backward(a: Args) -> Array:
    # torch multiplies by 1/6 rounded to float32 in every type.
    inside = _masked_gradient(a, (a["self"] > -3) & (a["self"] < 3))
    return np.asarray(inside * float(np.float32(1 / 6)))


def gelu_backward(a: Args) -> Array:
    x = np.asarray(a["self"], np.float64)
    if a["approximate"] == "tanh":
        scale = math.sqrt(2 / math.pi)
        t = np.tanh(scale * (x + 0.044715 * x**3))
        slope = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * scale * (1 + 3 * 0.044715 * x * x)
    else:
        bell = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        slope = 0.5 * (1 + erf(x * math.sqrt(0.5))) + x * bell
    return np.asarray(a["grad_output"] * slope)


def threshold_backward(a: Args) -> Array:
    return _masked_gradient(a, ~(a["self"] <= a["threshold"]))


def hardtanh_backward(a: Args) -> Array:
    return _masked_gradient(a, ~((a["self"] <= a["min_val"]) | (a["self"] >= a["max_val"])))


def leaky_relu_backward(a: Args) -> Array:
    grad = a["grad_output"]
    return np.asarray(np.where(a["self"] > 0, grad, grad * a["negative_slope"]))


def rrelu_backward(a: Args) -> Array:
    if a["training"] and a["upper"] - a["lower"] > 1e-6:
        return np.asarray(a["grad_output"] * a["noise"])
    return leaky_relu_backward({**a, "negative_slope": (a["lower"] + a["upper"]) / 2})


def elu_backward(a: Args) -> Array:
    grad, x = a["grad_output"], a["self_or_result"]
    alpha, scale, inner = a["alpha"], a["scale"], a["input_scale"]
    if a["is_result"]:
        low = inner * (x + alpha * scale)
    else:
        low = inner * alpha * scale * np.exp(x * inner)
    return np.asarray(np.where(x <= 0, grad * low, grad * scale))


def softplus_backward(a: Args) -> Array:
    scaled = a["self"] * a["beta"]
    return np.asarray(
        np.where(scaled > a["threshold"], a["grad_output"], a["grad_output"] * sigmoid(scaled))
    )


def log_sigmoid_backward(a: Args) -> Array:
    return np.asarray(a["grad_output"] * sigmoid(-a["self"]))


def shrink_backward(a: Args) -> Array:
    return _masked_gradient(a, ~((a["self"] >= -a["lambd"]) & (a["self"] <= a["lambd"])))


def logit_backward(a: Args) -> Array:
    x, eps = a["self"], a["eps"]
    low = 0.0 if eps is None else eps
    outside = (x < low) | (x > 1 - low)
    return np.where(outside, math.nan if eps is None else 0.0, a["grad_output"] / (x * (1 - x)))


def glu_backward(a: Args) -> Array:
    first, second = np.split(a["self"], 2, axis=a["dim"])
    gate, grad = sigmoid(second), a["grad_output"]
    return np.concatenate([grad * gate, grad * first * gate * (1 - gate)], axis=a["dim"])


def prelu_kernel_backward(a: Args) -> tuple[Array, Array]:
    grad, x = a["grad_output"], a["self"]
    return np.where(x > 0, grad, a["weight"] * grad), np.where(x > 0, 0.0, x * grad)


def softmax_backward(a: Args) -> Array:
    grad, y = a["grad_output"], a["output"]
    axis = a["dim"] if y.ndim else None
    return np.asarray(y * (grad - (grad * y).sum(axis=axis, keepdims=True)))


def log_softmax_backward(a: Args) -> Array:
    grad, y = a["grad_output"], a["output"]
    axis = a["dim"] if y.ndim else None
    return np.asarray(grad - np.exp(y) * grad.sum(axis=axis, keepdims=True))


def nll_loss_backward(a: Args) -> Array:
    x, target, weight = a["self"], a["target"], a["weight"]
    axis = 0 if x.ndim < 2 else 1
    target = target.reshape(()) if x.ndim < 2 else target
    grad = -np.asarray(a["grad_output"])
    if a["reduction"] == 1:
        grad = grad / a["total_weight"]
    shape = [1] * x.ndim
    shape[axis] = -1
    classes = np.arange(x.shape[axis]).reshape(shape)
    grad = np.expand_dims(np.broadcast_to(grad, target.shape), axis)
    if weight is not None:
        grad = grad * weight.reshape(shape)
    targets = np.expand_dims(target, axis)
    is_target = (targets == classes) & (targets != a["ignore_index"])
    return np.where(is_target, np.broadcast_to(grad, x.shape), 0.0)


def _input_gradient(g: Array, normal: Array, inverse: Array, axes: tuple[int, ...]) -> Array:
    """Gradient of ``(x - mean) * inverse`` over ``axes``; mean and inverse depend on x."""
    mean = g.mean(axis=axes, keepdims=True)
    projection = (g * normal).mean(axis=axes, keepdims=True)
    return np.asarray(inverse * (g - mean - normal * projection))


def _requested_gradients(mask: tuple[bool, ...], *made: Callable[[], Any]) -> tuple[Any, ...]:
    return tuple(
        gradient() if is_requested else None
        for is_requested, gradient in zip(mask, made, strict=True)
    )


def layer_norm_backward(a: Args) -> tuple[Any, ...]:
    grad, x, weight = a["grad_out"], a["input"], a["weight"]
    lead = x.ndim - len(a["normalized_shape"])
    axes, outer = tuple(range(lead, x.ndim)), tuple(range(lead))
    if x.size == 0:
        shape = x.shape[lead:]
        return _requested_gradients(a["output_mask"], lambda: x, *[lambda: np.zeros(shape)] * 2)
    normal = (x - a["mean"]) * a["rstd"]
    g = grad if weight is None else grad * weight
    return _requested_gradients(
        a["output_mask"],
        lambda: _input_gradient(g, normal, a["rstd"], axes),
        lambda: None if weight is None else (grad * normal).sum(axis=outer),
        lambda: None if a["bias"] is None else grad.sum(axis=outer),
    )


def rms_norm_backward(a: Args) -> tuple[Any, ...]:
    grad, x, weight, inverse = a["grad_out"], a["input"], a["weight"], a["rstd"]
    lead = x.ndim - len(a["normalized_shape"])
    axes, outer = tuple(range(lead, x.ndim)), tuple(range(lead))
    normal = x * inverse
    g = grad if weight is None else grad * weight
    return _requested_gradients(
        a["output_mask"],
        lambda: inverse * (g - normal * (g * normal).mean(axis=axes, keepdims=True)),
        lambda: None if weight is None else (grad * normal).sum(axis=outer),
    )


def group_norm_backward(a: Args) -> tuple[Any, ...]:
    x, grad, weight, groups = a["input"], a["grad_out"], a["weight"], a["group"]
    batch, channels = x.shape[:2]
    shape = (batch, groups, channels // groups, -1)
    if x.size == 0:
        return _requested_gradients(a["output_mask"], lambda: x, *[lambda: np.zeros(channels)] * 2)
    mean, inverse = (a[name].reshape(batch, groups, 1, 1) for name in ("mean", "rstd"))
    normal, grouped_grad = (x.reshape(shape) - mean) * inverse, grad.reshape(shape)
    g = grouped_grad if weight is None else grouped_grad * weight.reshape(1, groups, -1, 1)
    return _requested_gradients(
        a["output_mask"],
        lambda: _input_gradient(g, normal, inverse, (2, 3)).reshape(x.shape),
        lambda: (grouped_grad * normal).sum(axis=(0, 3)).ravel(),
        lambda: grouped_grad.sum(axis=(0, 3)).ravel(),
    )


def batch_norm_backward(a: Args) -> tuple[Any, ...]:
    x, weight = a["input"], a["weight"]
    grad = a["grad_out"] if "grad_out" in a else a["grad_output"]
    train = a.get("train", a.get("update", True))
    shape = (1, -1, *(1,) * (x.ndim - 2))
    axes = (0, *range(2, x.ndim))
    if train:
        mean = a["save_mean"]
        inverse = a["save_invstd"] if "save_invstd" in a else a["save_var"]
        if mean is None or inverse is None:
            raise UnsupportedUseError(
                "a gradient of batch_norm without its statistics is not supported"
            )
    else:
        mean, inverse = a["running_mean"], 1 / np.sqrt(a["running_var"] + a["eps"])
    mean, inverse = mean.reshape(shape), inverse.reshape(shape)
    normal = (x - mean) * inverse
    g = grad if weight is None else grad * weight.reshape(shape)
    return _requested_gradients(
        a["output_mask"],
        lambda: _input_gradient(g, normal, inverse, axes) if train else g * inverse,
        lambda: (grad * normal).sum(axis=axes),
        lambda: grad.sum(axis=axes),
    )
