"""Activation functions, made of simpler pointwise functions."""

from __future__ import annotations

import math

from scheduler.ir.values import Value
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.pointwise import elementwise, integer_power
from scheduler.lowering.tensor import Tensor
from scheduler.lowering.trees import call, const


def relu(x: Value) -> Value:
    """max(x, 0); a NaN is kept."""
    return call("maximum", x, const(0, x.dtype))


def _times(x: Value, factor: float) -> Value:
    return call("mul", x, const(factor, x.dtype))


def gelu(x: Value) -> Value:
    """x/2 (1 + erf(x / sqrt 2))."""
    one = const(1, x.dtype)
    return call("mul", _times(x, 0.5), call("add", call("erf", _times(x, math.sqrt(0.5))), one))


def gelu_tanh(x: Value) -> Value:
    """x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))."""
    inner = call("add", x, _times(integer_power(x, 3), 0.044715))
    tanh = call("tanh", _times(inner, math.sqrt(2 / math.pi)))
    return call("mul", _times(x, 0.5), call("add", tanh, const(1, x.dtype)))


def gelu_op(b: Builder, self: Tensor, approximate: str = "none") -> Tensor:
    if approximate not in ("none", "tanh"):
        raise Unsupported(f"gelu with approximate={approximate!r} is not supported")
    return elementwise(b, (self,), gelu if approximate == "none" else gelu_tanh)


def silu(x: Value) -> Value:
    """x sigmoid(x)."""
    return call("mul", x, call("sigmoid", x))


def _clip(x: Value, low: float, high: float) -> Value:
    return call("minimum", call("maximum", x, const(low, x.dtype)), const(high, x.dtype))


def relu6(x: Value) -> Value:
    """min(max(x, 0), 6)."""
    return _clip(x, 0, 6)


def hard_sigmoid(x: Value) -> Value:
    """min(max(x + 3, 0), 6) / 6."""
    return _times(_clip(call("add", x, const(3, x.dtype)), 0, 6), 1 / 6)


def hard_swish(x: Value) -> Value:
    """x hard_sigmoid(x)."""
    return call("mul", x, hard_sigmoid(x))


def hardtanh(b: Builder, self: Tensor, min_val: float = -1, max_val: float = 1) -> Tensor:
    return elementwise(b, (self,), lambda x: _clip(x, min_val, max_val))


def _is_positive(x: Value) -> Value:
    return call("gt", x, const(0, x.dtype))


def leaky_relu(b: Builder, self: Tensor, negative_slope: float = 0.01) -> Tensor:
    return elementwise(
        b, (self,), lambda x: call("where", _is_positive(x), x, _times(x, negative_slope))
    )


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
    return elementwise(
        b, (self, slope), lambda x, w: call("where", _is_positive(x), x, call("mul", x, w))
    )


def prelu_kernel(b: Builder, self: Tensor, weight: Tensor) -> Tensor:
    """``prelu`` with a weight that broadcasts."""
    return elementwise(
        b, (self, weight), lambda x, w: call("where", _is_positive(x), x, call("mul", x, w))
    )


def elu(
    b: Builder, self: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1
) -> Tensor:
    def function(x: Value) -> Value:
        low = _times(call("expm1", _times(x, input_scale)), alpha)
        return trees.scale_value(call("where", _is_positive(x), x, low), scale, x.dtype)

    return elementwise(b, (self,), function)


def softplus(b: Builder, self: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    def function(x: Value) -> Value:
        scaled = trees.scale_value(x, beta, x.dtype)
        soft = trees.scale_value(call("log1p", call("exp", scaled)), 1 / beta, x.dtype)
        return call("where", call("gt", scaled, const(threshold, x.dtype)), x, soft)

    return elementwise(b, (self,), function)


def selu(x: Value) -> Value:
    """Uses torch's constants for scale and alpha."""
    low = _times(call("expm1", x), 1.6732632423543772848170429916717 * _SELU_SCALE)
    return call("where", _is_positive(x), _times(x, _SELU_SCALE), low)


_SELU_SCALE = 1.0507009873554804934193349852946


def celu(b: Builder, self: Tensor, alpha: float = 1) -> Tensor:
    return elu(b, self, alpha, 1, 1 / alpha)


def threshold_op(b: Builder, self: Tensor, threshold: float, value: float) -> Tensor:
    def function(x: Value) -> Value:
        return call("where", call("le", x, const(threshold, x.dtype)), const(value, x.dtype), x)

    return elementwise(b, (self,), function)


def hardshrink(b: Builder, self: Tensor, lambd: float = 0.5) -> Tensor:
    def function(x: Value) -> Value:
        small = call("le", call("abs", x), const(lambd, x.dtype))
        return call("where", small, const(0, x.dtype), x)

    return elementwise(b, (self,), function)


def softshrink(b: Builder, self: Tensor, lambd: float = 0.5) -> Tensor:
    def function(x: Value) -> Value:
        by = const(lambd, x.dtype)
        low = call("where", call("lt", x, call("neg", by)), call("add", x, by), _times(x, 0))
        return call("where", call("gt", x, by), call("sub", x, by), low)

    return elementwise(b, (self,), function)


def logaddexp(b: Builder, self: Tensor, other: Tensor) -> Tensor:
    """max(x, y) + log(1 + exp(-|x - y|)); for two equal infinities, that infinity."""

    def function(x: Value, y: Value) -> Value:
        tail = call("log1p", call("exp", call("neg", call("abs", call("sub", x, y)))))
        top = call("maximum", x, y)
        equal = call("logical_and", call("eq", x, y), call("isinf", x))
        return call("where", equal, x, call("add", top, tail))

    complex_numbers = b.meta().dtype.is_complex
    return elementwise(b, (self, other), _complex_logaddexp if complex_numbers else function)


def _complex_logaddexp(x: Value, y: Value) -> Value:
    """log(exp(x) + exp(y)) of complex numbers, shifted by the one with the greater real part."""
    first = call("lt", call("real", x), call("real", y))
    low, high = call("where", first, x, y), call("where", first, y, x)
    one = const(1, x.dtype)
    made = call("add", high, call("log", call("add", one, call("exp", call("sub", low, high)))))
    least = call("real", low)
    endless = call("logical_and", call("isinf", least), call("eq", least, call("real", high)))
    below = call("lt", least, const(0, least.dtype))
    ends = call("log", call("add", call("exp", low), call("exp", high)))
    made = call("where", endless, call("where", below, low, ends), made)
    nothing = call("logical_or", call("isnan", x), call("isnan", y))
    return call("where", nothing, const(complex(math.nan, math.nan), x.dtype), made)


def log_sigmoid(x: Value) -> Value:
    """min(x, 0) - log(1 + exp(-|x|))."""
    tail = call("log1p", call("exp", call("neg", call("abs", x))))
    return call("sub", call("minimum", x, const(0, x.dtype)), tail)


def mish(x: Value) -> Value:
    """x tanh(softplus(x)), with softplus in a form whose exp does not overflow."""
    soft = call(
        "sub", relu(x), call("neg", call("log1p", call("exp", call("neg", call("abs", x)))))
    )
    return call("mul", x, call("tanh", soft))


def glu(b: Builder, self: Tensor, dim: int = -1) -> Tensor:
    meta = b.meta()
    at = dim % self.rank
    half = meta.size[at]
    first = self.view(meta.size, lambda i: i)
    second = self.view(meta.size, lambda i: (*i[:at], i[at] + half, *i[at + 1 :]))
    return elementwise(b, (first, second), lambda x, y: call("mul", x, call("sigmoid", y)))
