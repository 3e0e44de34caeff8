"""Gradients of activation functions and of classification losses: pointwise functions.

At a kink of the function, the side of torch's kernels is used (ATen/native/cpu/Activation.cpp).
"""

# ruff: noqa: ARG001 - rules have the signature of their op

from __future__ import annotations

import math
from collections.abc import Callable

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.values import Value, call, index_value, upcast
from scheduler.lowering.builder import Builder
from scheduler.lowering.concat import concatenate
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.pointwise import elementwise, integer_power, materialize
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import broadcast

_SIXTH = 0.16666667163372039794921875  # the float32 value, which torch uses in every type
_MEAN = 1  # torch's number for the reduction of a loss


def _input_rule(function: Callable[[Value, Value], Value]) -> Callable[..., Tensor]:
    """The rule of a function of the gradient and the argument."""

    def rule(b: Builder, grad_output: Tensor, self: Tensor) -> Tensor:
        return elementwise(b, (grad_output, self), function)

    return rule


def _output_rule(function: Callable[[Value, Value], Value]) -> Callable[..., Tensor]:
    """The rule of a function of the gradient and the result."""

    def rule(b: Builder, grad_output: Tensor, output: Tensor) -> Tensor:
        return elementwise(b, (grad_output, output), function)

    return rule


def _sigmoid(g: Value, y: Value) -> Value:
    return g * (y * (1 - y))


def _tanh(g: Value, y: Value) -> Value:
    return g * (1 - integer_power(y, 2))


def _silu(g: Value, x: Value) -> Value:
    s = call("sigmoid", x)
    slope = x * (1 - s) + 1
    return g * (s * slope)


def _mish(g: Value, x: Value) -> Value:
    small = call("log1p", call("exp", -call("abs", x)))
    t = call("tanh", call("maximum", x, 0) + small)
    rest = 1 - integer_power(t, 2)
    slope = t + x * call("sigmoid", x) * rest
    return g * slope


def _hard_swish(g: Value, x: Value) -> Value:
    middle = g * (x / 3 + 0.5)
    upper = call("where", x < 3, middle, g)
    return call("where", x <= -3, 0, upper)


def _hard_sigmoid(g: Value, x: Value) -> Value:
    inside = (x > -3) & (x < 3)
    return call("where", inside, g * _SIXTH, 0)


sigmoid_backward = _output_rule(_sigmoid)
tanh_backward = _output_rule(_tanh)
silu_backward = _input_rule(_silu)
mish_backward = _input_rule(_mish)
hardswish_backward = _input_rule(_hard_swish)
hardsigmoid_backward = _input_rule(_hard_sigmoid)


def gelu_backward(
    b: Builder, grad_output: Tensor, self: Tensor, approximate: str = "none"
) -> Tensor:
    if approximate not in ("none", "tanh"):
        raise Unsupported(f"gelu with approximate={approximate!r} is not supported")
    slope = _gelu_slope if approximate == "none" else _gelu_tanh_slope
    return elementwise(b, (grad_output, self), lambda g, x: g * slope(x))


def _gelu_slope(x: Value) -> Value:
    """Φ(x) + x φ(x)."""
    cdf = (call("erf", x * math.sqrt(0.5)) + 1) * 0.5
    bell = call("exp", integer_power(x, 2) * -0.5)
    return cdf + x * (bell * (1 / math.sqrt(2 * math.pi)))


def _gelu_tanh_slope(x: Value) -> Value:
    beta, kappa = math.sqrt(2 / math.pi), 0.044715
    inner = (x + integer_power(x, 3) * kappa) * beta
    t = call("tanh", inner)
    turning = 1 - integer_power(t, 2)
    rising = (integer_power(x, 2) * (3 * kappa) + 1) * beta
    right = x * 0.5 * (turning * rising)
    return (t + 1) * 0.5 + right


def threshold_backward(b: Builder, grad_output: Tensor, self: Tensor, threshold: float) -> Tensor:
    return elementwise(b, (grad_output, self), lambda g, x: call("where", x <= threshold, 0, g))


def hardtanh_backward(
    b: Builder, grad_output: Tensor, self: Tensor, min_val: float, max_val: float
) -> Tensor:
    def function(g: Value, x: Value) -> Value:
        outside = (x <= min_val) | (x >= max_val)
        return call("where", outside, 0, g)

    return elementwise(b, (grad_output, self), function)


def leaky_relu_backward(
    b: Builder, grad_output: Tensor, self: Tensor, negative_slope: float, self_is_result: bool
) -> Tensor:
    return elementwise(
        b, (grad_output, self), lambda g, x: call("where", x > 0, g, g * negative_slope)
    )


def rrelu_backward(
    b: Builder,
    grad_output: Tensor,
    self: Tensor,
    noise: Tensor,
    lower: float,
    upper: float,
    training: bool,
    self_is_result: bool,
) -> Tensor:
    if training and upper - lower > 1e-6:  # torch's test for different slopes
        return elementwise(b, (grad_output, noise), lambda g, n: g * n)
    return leaky_relu_backward(b, grad_output, self, (lower + upper) / 2, self_is_result)


def elu_backward(
    b: Builder,
    grad_output: Tensor,
    alpha: float,
    scale: float,
    input_scale: float,
    is_result: bool,
    self_or_result: Tensor,
) -> Tensor:
    def function(g: Value, x: Value) -> Value:
        if is_result:
            low = (x + alpha * scale) * input_scale
        else:
            low = call("exp", x * input_scale) * (alpha * scale * input_scale)
        return call("where", x <= 0, g * low, g * scale)

    return elementwise(b, (grad_output, self_or_result), function)


def softplus_backward(
    b: Builder, grad_output: Tensor, self: Tensor, beta: float, threshold: float
) -> Tensor:
    def function(g: Value, x: Value) -> Value:
        scaled = x * beta
        return call("where", scaled > threshold, g, g * call("sigmoid", scaled))

    return elementwise(b, (grad_output, self), function)


def log_sigmoid_backward(b: Builder, grad_output: Tensor, self: Tensor, buffer: Tensor) -> Tensor:
    """``buffer`` is what torch's CPU kernel keeps from the forward pass; it is recomputed here."""
    return elementwise(b, (grad_output, self), lambda g, x: g * call("sigmoid", -x))


def _outside(g: Value, x: Value, lambd: float) -> Value:
    """The gradient outside the bounds; 0 inside."""
    inside = (x >= -lambd) & (x <= lambd)
    return call("where", inside, 0, g)


def hardshrink_backward(b: Builder, grad_out: Tensor, self: Tensor, lambd: float) -> Tensor:
    return elementwise(b, (grad_out, self), lambda g, x: _outside(g, x, lambd))


def softshrink_backward(b: Builder, grad_output: Tensor, self: Tensor, lambd: float) -> Tensor:
    return elementwise(b, (grad_output, self), lambda g, x: _outside(g, x, lambd))


def logit_backward(
    b: Builder, grad_output: Tensor, self: Tensor, eps: float | None = None
) -> Tensor:
    low, there = (0.0, math.nan) if eps is None else (float(eps), 0.0)

    def function(g: Value, x: Value) -> Value:
        outside = (x < low) | (x > 1 - low)
        slope = x * (1 - x)
        return call("where", outside, there, g / slope)

    return elementwise(b, (grad_output, self), function)


def glu_backward(b: Builder, grad_output: Tensor, self: Tensor, dim: int) -> Tensor:
    """For the first half, the gate; for the gate, the first half times the gate's slope."""
    at, held = dim % self.rank, self.dtype.compute_dtype
    half = grad_output.size[at]

    def part(function: Callable[[Value, Value, Value], Value]) -> Tensor:
        def read(i: Index) -> Value:
            behind = (*i[:at], i[at] + half, *i[at + 1 :])
            g, x = (upcast(t.at(i), held) for t in (grad_output, self))
            return function(g, x, call("sigmoid", upcast(self.at(behind), held)))

        return Tensor(grad_output.size, self.dtype, read)

    first = part(lambda g, _, s: g * s)
    second = part(lambda g, x, s: _sigmoid(g, s) * x)
    return materialize(b, concatenate((first, second), at, self.dtype))


def prelu_kernel_backward(
    b: Builder, grad_output: Tensor, self: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of the argument, and of the weight before the sum over its broadcast
    dimensions."""
    held = self.dtype.compute_dtype
    wide = broadcast(weight, self.size)

    def made(function: Callable[[Value, Value, Value], Value]) -> Tensor:
        def read(i: Index) -> Value:
            g, x, w = (upcast(t.at(i), held) for t in (grad_output, self, wide))
            return function(g, x, w)

        return b.pointwise(self.size, self.dtype, read)

    by_self = made(lambda g, x, w: call("where", x > 0, g, w * g))
    by_weight = made(lambda g, x, _: call("where", x > 0, 0, x * g))
    return by_self, by_weight


def nll_loss_backward(
    b: Builder,
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    """-weight[class] at each row's own class (divided by the total weight for a mean), 0 at all
    other classes and where the class is ignored."""
    at = 0 if self.rank < 2 else 1
    held = self.dtype.compute_dtype

    def read(i: Index) -> Value:
        place = (*i[:at], *i[at + 1 :])
        # Without a batch the class may be a one-element tensor.
        own = upcast(target.at((sympy.Integer(0),) * target.rank if at == 0 else place), DType.I64)
        g = upcast(grad_output.at(place if grad_output.rank == len(place) else ()), held)
        g = -g
        if weight is not None:
            g = g * upcast(weight.at(i[at : at + 1]), held)
        if reduction == _MEAN:
            g = g / upcast(total_weight.at(()), held)
        hit = call("eq", own, index_value(i[at]))
        kept = call("ne", own, ignore_index)
        return call("where", hit & kept, g, 0)

    return materialize(b, Tensor(self.size, self.dtype, read))
