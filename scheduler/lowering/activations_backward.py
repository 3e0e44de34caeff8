"""Gradients of activation functions: formulas of the gradient ``g`` and the function's argument
``x`` or result ``y``.

At a kink of the function, the side of torch's kernels is used (ATen/native/cpu/Activation.cpp).
"""

# ruff: noqa: ARG001 - formulas have the parameters of their op

from __future__ import annotations

import math
from collections.abc import Callable

from scheduler.ir.values import Value, call, upcast
from scheduler.lowering.activations import check_approximation
from scheduler.lowering.builder import Builder
from scheduler.lowering.concat import concatenate
from scheduler.lowering.pointwise import integer_power, materialize
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import broadcast

_FLOAT32_SIXTH = 0.16666667163372039794921875  # the float32 value, which torch uses in every type


def sigmoid(g: Value, y: Value) -> Value:
    return g * (y * (1 - y))


def tanh(g: Value, y: Value) -> Value:
    return g * (1 - integer_power(y, 2))


def silu(g: Value, x: Value) -> Value:
    s = call("sigmoid", x)
    return g * (s * (x * (1 - s) + 1))


def mish(g: Value, x: Value) -> Value:
    log_term = call("log1p", call("exp", -call("abs", x)))
    t = call("tanh", call("maximum", x, 0) + log_term)
    return g * (t + x * call("sigmoid", x) * (1 - integer_power(t, 2)))


def hard_swish(g: Value, x: Value) -> Value:
    middle = g * (x / 3 + 0.5)
    return call("where", x <= -3, 0, call("where", x < 3, middle, g))


def hard_sigmoid(g: Value, x: Value) -> Value:
    return call("where", (x > -3) & (x < 3), g * _FLOAT32_SIXTH, 0)


def gelu(g: Value, x: Value, approximate: str = "none") -> Value:
    """The slope is Φ(x) + x φ(x)."""
    check_approximation(approximate)
    if approximate == "none":
        cdf = (call("erf", x * math.sqrt(0.5)) + 1) * 0.5
        bell = call("exp", integer_power(x, 2) * -0.5)
        return g * (cdf + x * (bell * (1 / math.sqrt(2 * math.pi))))
    beta, kappa = math.sqrt(2 / math.pi), 0.044715
    t = call("tanh", (x + integer_power(x, 3) * kappa) * beta)
    inner_slope = (integer_power(x, 2) * (3 * kappa) + 1) * beta
    slope_part = x * 0.5 * ((1 - integer_power(t, 2)) * inner_slope)
    return g * ((t + 1) * 0.5 + slope_part)


def threshold(g: Value, x: Value, threshold: float) -> Value:
    return call("where", x <= threshold, 0, g)


def hardtanh(g: Value, x: Value, min_val: float, max_val: float) -> Value:
    return call("where", (x <= min_val) | (x >= max_val), 0, g)


def leaky_relu(g: Value, x: Value, negative_slope: float, self_is_result: bool) -> Value:
    return call("where", x > 0, g, g * negative_slope)


def rrelu(
    g: Value,
    x: Value,
    noise: Value,
    lower: float,
    upper: float,
    training: bool,
    self_is_result: bool,
) -> Value:
    if training and upper - lower > 1e-6:  # torch's test for different slopes
        return g * noise
    return leaky_relu(g, x, (lower + upper) / 2, self_is_result)


def elu(
    g: Value, alpha: float, scale: float, input_scale: float, is_result: bool, x: Value
) -> Value:
    if is_result:
        low = (x + alpha * scale) * input_scale
    else:
        low = call("exp", x * input_scale) * (alpha * scale * input_scale)
    return call("where", x <= 0, g * low, g * scale)


def softplus(g: Value, x: Value, beta: float, threshold: float) -> Value:
    scaled = x * beta
    return call("where", scaled > threshold, g, g * call("sigmoid", scaled))


def log_sigmoid(g: Value, x: Value, buffer: Tensor) -> Value:
    """``buffer`` is what torch's CPU kernel keeps from the forward pass; it is recomputed here."""
    return g * call("sigmoid", -x)


def shrink(g: Value, x: Value, lambd: float) -> Value:
    """The gradient of hardshrink and softshrink."""
    return call("where", (x >= -lambd) & (x <= lambd), 0, g)


def logit(g: Value, x: Value, eps: float | None = None) -> Value:
    low, outside_slope = (0.0, math.nan) if eps is None else (float(eps), 0.0)
    outside = (x < low) | (x > 1 - low)
    return call("where", outside, outside_slope, g / (x * (1 - x)))


def glu_backward(b: Builder, grad_output: Tensor, self: Tensor, dim: int) -> Tensor:
    """For the first half, the gate; for the gate, the first half times the gate's slope."""
    axis, compute_dtype = dim % self.rank, self.dtype.compute_dtype
    half = grad_output.size[axis]

    def part(function: Callable[[Value, Value, Value], Value]) -> Tensor:
        def read(i: Index) -> Value:
            gate_index = (*i[:axis], i[axis] + half, *i[axis + 1 :])
            g, x = (upcast(t.at(i), compute_dtype) for t in (grad_output, self))
            return function(g, x, call("sigmoid", upcast(self.at(gate_index), compute_dtype)))

        return Tensor(grad_output.size, self.dtype, read)

    first = part(lambda g, _, s: g * s)
    second = part(lambda g, x, s: sigmoid(g, s) * x)
    return materialize(b, concatenate((first, second), axis, self.dtype))


def prelu_kernel_backward(
    b: Builder, grad_output: Tensor, self: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of the argument, and of the weight before the sum over its broadcast
    dimensions."""
    compute_dtype = self.dtype.compute_dtype
    broadcast_weight = broadcast(weight, self.size)

    def gradient_by(function: Callable[[Value, Value, Value], Value]) -> Tensor:
        def read(i: Index) -> Value:
            g, x, w = (
                upcast(t.at(i), compute_dtype) for t in (grad_output, self, broadcast_weight)
            )
            return function(g, x, w)

        return b.pointwise(self.size, self.dtype, read)

    by_self = gradient_by(lambda g, x, w: call("where", x > 0, g, w * g))
    by_weight = gradient_by(lambda g, x, _: call("where", x > 0, 0, x * g))
    return by_self, by_weight
