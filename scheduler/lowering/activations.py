"""Activation functions, made of simpler pointwise functions."""

from __future__ import annotations

import math

from scheduler.ir.values import Value, call, const
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.pointwise import elementwise, integer_power
from scheduler.lowering.tensor import Tensor


def relu(x: Value) -> Value:
    """max(x, 0); a NaN is kept."""
    return call("maximum", x, 0)


def gelu(x: Value) -> Value:
    """x/2 (1 + erf(x / sqrt 2))."""
    one = const(1, x.dtype)
    return x * 0.5 * (call("erf", x * math.sqrt(0.5)) + one)


def gelu_tanh(x: Value) -> Value:
    """x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))."""
    inner = x + integer_power(x, 3) * 0.044715
    tanh = call("tanh", inner * math.sqrt(2 / math.pi))
    return x * 0.5 * (tanh + 1)


def gelu_op(b: Builder, self: Tensor, approximate: str = "none") -> Tensor:
    if approximate not in ("none", "tanh"):
        raise Unsupported(f"gelu with approximate={approximate!r} is not supported")
    return elementwise(b, (self,), gelu if approximate == "none" else gelu_tanh)


def silu(x: Value) -> Value:
    """x sigmoid(x)."""
    return x * call("sigmoid", x)


def _clip(x: Value, low: float, high: float) -> Value:
    return call("minimum", call("maximum", x, low), high)


def relu6(x: Value) -> Value:
    """min(max(x, 0), 6)."""
    return _clip(x, 0, 6)


def hard_sigmoid(x: Value) -> Value:
    """min(max(x + 3, 0), 6) / 6."""
    return _clip(x + 3, 0, 6) * (1 / 6)


def hard_swish(x: Value) -> Value:
    """x hard_sigmoid(x)."""
    return x * hard_sigmoid(x)


def hardtanh(b: Builder, self: Tensor, min_val: float = -1, max_val: float = 1) -> Tensor:
    return elementwise(b, (self,), lambda x: _clip(x, min_val, max_val))


def leaky_relu(b: Builder, self: Tensor, negative_slope: float = 0.01) -> Tensor:
    return elementwise(b, (self,), lambda x: call("where", x > 0, x, x * negative_slope))


def prelu(b: Builder, self: Tensor, weight: Tensor) -> Tensor:
    lead = self.rank - 2
    slope = weight
    if weight.rank == 1 and weight.size[0] == 1:
        slope = weight.view((), lambda _: (weight.size[0] * 0,))
    elif weight.rank == 1 and self.rank > 1:
        slope = weight.view(
            (self.size[0] * 0 + 1, *weight.size, *((self.size[0] * 0 + 1,) * lead)),
            lambda i: i[1:2],
        )
    return elementwise(b, (self, slope), lambda x, w: call("where", x > 0, x, x * w))


def prelu_kernel(b: Builder, self: Tensor, weight: Tensor) -> Tensor:
    """``prelu`` with a weight that broadcasts."""
    return elementwise(b, (self, weight), lambda x, w: call("where", x > 0, x, x * w))


def elu(
    b: Builder, self: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1
) -> Tensor:
    def function(x: Value) -> Value:
        low = call("expm1", x * input_scale) * alpha
        return trees.scale_value(call("where", x > 0, x, low), scale, x.dtype)

    return elementwise(b, (self,), function)


def softplus(b: Builder, self: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    def function(x: Value) -> Value:
        scaled = trees.scale_value(x, beta, x.dtype)
        soft = trees.scale_value(call("log1p", call("exp", scaled)), 1 / beta, x.dtype)
        return call("where", scaled > threshold, x, soft)

    return elementwise(b, (self,), function)


def selu(x: Value) -> Value:
    """Uses torch's constants for scale and alpha."""
    low = call("expm1", x) * (1.6732632423543772 * _SELU_SCALE)
    return call("where", x > 0, x * _SELU_SCALE, low)


_SELU_SCALE = 1.0507009873554804934193349852946


def celu(b: Builder, self: Tensor, alpha: float = 1) -> Tensor:
    return elu(b, self, alpha, 1, 1 / alpha)


def threshold_op(b: Builder, self: Tensor, threshold: float, value: float) -> Tensor:
    def function(x: Value) -> Value:
        return call("where", x <= threshold, value, x)

    return elementwise(b, (self,), function)


def hardshrink(b: Builder, self: Tensor, lambd: float = 0.5) -> Tensor:
    def function(x: Value) -> Value:
        small = call("abs", x) <= lambd
        return call("where", small, 0, x)

    return elementwise(b, (self,), function)


def softshrink(b: Builder, self: Tensor, lambd: float = 0.5) -> Tensor:
    def function(x: Value) -> Value:
        by = const(lambd, x.dtype)
        low = call("where", x < -by, x + by, x * 0)
        return call("where", x > by, x - by, low)

    return elementwise(b, (self,), function)


def logaddexp(b: Builder, self: Tensor, other: Tensor) -> Tensor:
    """max(x, y) + log(1 + exp(-|x - y|)); for two equal infinities, that infinity."""

    def function(x: Value, y: Value) -> Value:
        tail = call("log1p", call("exp", -call("abs", x - y)))
        top = call("maximum", x, y)
        equal = call("eq", x, y) & call("isinf", x)
        return call("where", equal, x, top + tail)

    complex_numbers = b.meta().dtype.is_complex
    return elementwise(b, (self, other), _complex_logaddexp if complex_numbers else function)


def _complex_logaddexp(x: Value, y: Value) -> Value:
    """log(exp(x) + exp(y)) of complex numbers, shifted by the one with the greater real part."""
    first = call("real", x) < call("real", y)
    low, high = call("where", first, x, y), call("where", first, y, x)
    one = const(1, x.dtype)
    made = high + call("log", one + call("exp", low - high))
    least = call("real", low)
    endless = call("isinf", least) & call("eq", least, call("real", high))
    below = least < 0
    ends = call("log", call("exp", low) + call("exp", high))
    made = call("where", endless, call("where", below, low, ends), made)
    nothing = call("isnan", x) | call("isnan", y)
    return call("where", nothing, complex(math.nan, math.nan), made)


def log_sigmoid(x: Value) -> Value:
    """min(x, 0) - log(1 + exp(-|x|))."""
    tail = call("log1p", call("exp", -call("abs", x)))
    return call("minimum", x, 0) - tail


def mish(x: Value) -> Value:
    """x tanh(softplus(x)), with softplus in a form whose exp does not overflow."""
    soft = relu(x) - -call("log1p", call("exp", -call("abs", x)))
    return x * call("tanh", soft)


def glu(b: Builder, self: Tensor, dim: int = -1) -> Tensor:
    meta = b.meta()
    at = dim % self.rank
    half = meta.size[at]
    first = self.view(meta.size, lambda i: i)
    second = self.view(meta.size, lambda i: (*i[:at], i[at] + half, *i[at + 1 :]))
    return elementwise(b, (first, second), lambda x, y: x * call("sigmoid", y))
