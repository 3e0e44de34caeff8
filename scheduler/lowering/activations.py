"""Activation functions: formulas of pointwise functions."""

from __future__ import annotations

import math

import sympy

from scheduler.ir.values import Value, call, const
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.pointwise import elementwise, integer_power
from scheduler.lowering.tensor import Tensor

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def relu(x: Value) -> Value:
    """max(x, 0); a NaN is kept."""
    return call("maximum", x, 0)


def gelu(x: Value, approximate: str = "none") -> Value:
    """x/2 (1 + erf(x / sqrt 2)), or with "tanh" x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))."""
    check_approximation(approximate)
    if approximate == "none":
        return x * 0.5 * (call("erf", x * math.sqrt(0.5)) + 1)
    inner = x + integer_power(x, 3) * 0.044715
    return x * 0.5 * (call("tanh", inner * math.sqrt(2 / math.pi)) + 1)


def check_approximation(approximate: str) -> None:
    """Raise ``Unsupported`` for an unknown form of gelu."""
    if approximate not in ("none", "tanh"):
        raise Unsupported(f"gelu with approximate={approximate!r} is not supported")


def silu(x: Value) -> Value:
    return x * call("sigmoid", x)


def hardtanh(x: Value, min_val: float = -1, max_val: float = 1) -> Value:
    """x clipped to a range."""
    return call("minimum", call("maximum", x, min_val), max_val)


def relu6(x: Value) -> Value:
    return hardtanh(x, 0, 6)


def hard_sigmoid(x: Value) -> Value:
    """min(max(x + 3, 0), 6) / 6."""
    return hardtanh(x + 3, 0, 6) * (1 / 6)


def hard_swish(x: Value) -> Value:
    return x * hard_sigmoid(x)


def leaky_relu(x: Value, negative_slope: float = 0.01) -> Value:
    return call("where", x > 0, x, x * negative_slope)


def prelu_kernel(x: Value, slope: Value) -> Value:
    """``prelu`` with a weight that broadcasts."""
    return call("where", x > 0, x, x * slope)


def prelu(b: Builder, self: Tensor, weight: Tensor) -> Tensor:
    slope = weight
    if weight.rank == 1 and weight.size[0] == 1:
        slope = weight.view((), lambda _: (sympy.Integer(0),))
    elif weight.rank == 1 and self.rank > 1:
        ones = (sympy.Integer(1),) * (self.rank - 1)
        slope = weight.view((ones[0], *weight.size, *ones[1:]), lambda i: i[1:2])
    return elementwise(b, (self, slope), prelu_kernel)


def elu(x: Value, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Value:
    negative_part = call("expm1", x * input_scale) * alpha
    return trees.scale_value(call("where", x > 0, x, negative_part), scale, x.dtype)


def celu(x: Value, alpha: float = 1) -> Value:
    return elu(x, alpha, 1, 1 / alpha)


def selu(x: Value) -> Value:
    negative_part = call("expm1", x) * (_SELU_ALPHA * _SELU_SCALE)
    return call("where", x > 0, x * _SELU_SCALE, negative_part)


def softplus(x: Value, beta: float = 1, threshold: float = 20) -> Value:
    scaled = trees.scale_value(x, beta, x.dtype)
    soft = trees.scale_value(call("log1p", call("exp", scaled)), 1 / beta, x.dtype)
    return call("where", scaled > threshold, x, soft)


def threshold_or_value(x: Value, threshold: float, value: float) -> Value:
    return call("where", x <= threshold, value, x)


def hardshrink(x: Value, lambd: float = 0.5) -> Value:
    return call("where", call("abs", x) <= lambd, 0, x)


def softshrink(x: Value, lambd: float = 0.5) -> Value:
    bound = const(lambd, x.dtype)
    below = call("where", x < -bound, x + bound, x * 0)
    return call("where", x > bound, x - bound, below)


def logaddexp(x: Value, y: Value) -> Value:
    """max(x, y) + log(1 + exp(-|x - y|)); for two equal infinities, that infinity.

    Complex numbers are shifted by the one with the greater real part.
    """
    if not x.dtype.is_complex:
        tail = call("log1p", call("exp", -call("abs", x - y)))
        are_equal_infinities = call("eq", x, y) & call("isinf", x)
        return call("where", are_equal_infinities, x, call("maximum", x, y) + tail)
    is_x_lower = call("real", x) < call("real", y)
    low, high = call("where", is_x_lower, x, y), call("where", is_x_lower, y, x)
    total = high + call("log", 1 + call("exp", low - high))
    low_real = call("real", low)
    are_infinite = call("isinf", low_real) & call("eq", low_real, call("real", high))
    unshifted = call("log", call("exp", low) + call("exp", high))
    total = call("where", are_infinite, call("where", low_real < 0, low, unshifted), total)
    is_nan = call("isnan", x) | call("isnan", y)
    return call("where", is_nan, complex(math.nan, math.nan), total)


def log_sigmoid(x: Value) -> Value:
    """min(x, 0) - log(1 + exp(-|x|))."""
    return call("minimum", x, 0) - call("log1p", call("exp", -call("abs", x)))


def mish(x: Value) -> Value:
    """x tanh(softplus(x)), with softplus in a form whose exp does not overflow."""
    soft = relu(x) - -call("log1p", call("exp", -call("abs", x)))
    return x * call("tanh", soft)


def glu(b: Builder, self: Tensor, dim: int = -1) -> Tensor:
    meta = b.output_meta()
    axis = dim % self.rank
    half_size = meta.size[axis]
    first = self.view(meta.size, lambda i: i)
    second = self.view(meta.size, lambda i: (*i[:axis], i[axis] + half_size, *i[axis + 1 :]))
    return elementwise(b, (first, second), lambda x, y: x * call("sigmoid", y))
