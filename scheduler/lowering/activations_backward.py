"""Gradients of activation functions and of classification losses: pointwise functions.

At a kink of the function, the side of torch's kernels is used (ATen/native/cpu/Activation.cpp).
"""

# ruff: noqa: ARG001 - rules have the signature of their op

from __future__ import annotations

import math
from collections.abc import Callable

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.values import Value
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.concat import concatenate
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.pointwise import elementwise, integer_power, materialize
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.trees import call, const
from scheduler.lowering.views import broadcast

_SIXTH = 0.16666667163372039794921875  # the float32 value, which torch uses in every type
_MEAN = 1  # torch's number for the reduction of a loss


def _number(x: Value, value: float) -> Value:
    return const(value, x.dtype)


def _times(x: Value, factor: float) -> Value:
    return call("mul", x, _number(x, factor))


def _plus(x: Value, value: float) -> Value:
    return call("add", x, _number(x, value))


def _test(name: str, x: Value, value: float) -> Value:
    return call(name, x, _number(x, value))


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
    return call("mul", g, call("mul", y, call("sub", _number(y, 1), y)))


def _tanh(g: Value, y: Value) -> Value:
    return call("mul", g, call("sub", _number(y, 1), integer_power(y, 2)))


def _silu(g: Value, x: Value) -> Value:
    s = call("sigmoid", x)
    slope = _plus(call("mul", x, call("sub", _number(x, 1), s)), 1)
    return call("mul", g, call("mul", s, slope))


def _mish(g: Value, x: Value) -> Value:
    small = call("log1p", call("exp", call("neg", call("abs", x))))
    t = call("tanh", call("add", call("maximum", x, _number(x, 0)), small))
    rest = call("sub", _number(x, 1), integer_power(t, 2))
    slope = call("add", t, call("mul", call("mul", x, call("sigmoid", x)), rest))
    return call("mul", g, slope)


def _hard_swish(g: Value, x: Value) -> Value:
    middle = call("mul", g, _plus(call("truediv", x, _number(x, 3)), 0.5))
    upper = call("where", _test("lt", x, 3), middle, g)
    return call("where", _test("le", x, -3), _number(g, 0), upper)


def _hard_sigmoid(g: Value, x: Value) -> Value:
    inside = call("logical_and", _test("gt", x, -3), _test("lt", x, 3))
    return call("where", inside, _times(g, _SIXTH), _number(g, 0))


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
    return elementwise(b, (grad_output, self), lambda g, x: call("mul", g, slope(x)))


def _gelu_slope(x: Value) -> Value:
    """Φ(x) + x φ(x)."""
    cdf = _times(_plus(call("erf", _times(x, math.sqrt(0.5))), 1), 0.5)
    bell = call("exp", _times(integer_power(x, 2), -0.5))
    return call("add", cdf, call("mul", x, _times(bell, 1 / math.sqrt(2 * math.pi))))


def _gelu_tanh_slope(x: Value) -> Value:
    beta, kappa = math.sqrt(2 / math.pi), 0.044715
    inner = _times(call("add", x, _times(integer_power(x, 3), kappa)), beta)
    t = call("tanh", inner)
    turning = call("sub", _number(x, 1), integer_power(t, 2))
    rising = _times(_plus(_times(integer_power(x, 2), 3 * kappa), 1), beta)
    right = call("mul", _times(x, 0.5), call("mul", turning, rising))
    return call("add", _times(_plus(t, 1), 0.5), right)


def threshold_backward(b: Builder, grad_output: Tensor, self: Tensor, threshold: float) -> Tensor:
    return elementwise(
        b,
        (grad_output, self),
        lambda g, x: call("where", _test("le", x, threshold), _number(g, 0), g),
    )


def hardtanh_backward(
    b: Builder, grad_output: Tensor, self: Tensor, min_val: float, max_val: float
) -> Tensor:
    def function(g: Value, x: Value) -> Value:
        outside = call("logical_or", _test("le", x, min_val), _test("ge", x, max_val))
        return call("where", outside, _number(g, 0), g)

    return elementwise(b, (grad_output, self), function)


def leaky_relu_backward(
    b: Builder, grad_output: Tensor, self: Tensor, negative_slope: float, self_is_result: bool
) -> Tensor:
    return elementwise(
        b,
        (grad_output, self),
        lambda g, x: call("where", _test("gt", x, 0), g, _times(g, negative_slope)),
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
        return elementwise(b, (grad_output, noise), lambda g, n: call("mul", g, n))
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
            low = _times(_plus(x, alpha * scale), input_scale)
        else:
            low = _times(call("exp", _times(x, input_scale)), alpha * scale * input_scale)
        return call("where", _test("le", x, 0), call("mul", g, low), _times(g, scale))

    return elementwise(b, (grad_output, self_or_result), function)


def softplus_backward(
    b: Builder, grad_output: Tensor, self: Tensor, beta: float, threshold: float
) -> Tensor:
    def function(g: Value, x: Value) -> Value:
        scaled = _times(x, beta)
        return call(
            "where", _test("gt", scaled, threshold), g, call("mul", g, call("sigmoid", scaled))
        )

    return elementwise(b, (grad_output, self), function)


def log_sigmoid_backward(b: Builder, grad_output: Tensor, self: Tensor, buffer: Tensor) -> Tensor:
    """``buffer`` is what torch's CPU kernel keeps from the forward pass; it is recomputed here."""
    return elementwise(
        b, (grad_output, self), lambda g, x: call("mul", g, call("sigmoid", call("neg", x)))
    )


def _outside(g: Value, x: Value, lambd: float) -> Value:
    """The gradient outside the bounds; 0 inside."""
    inside = call("logical_and", _test("ge", x, -lambd), _test("le", x, lambd))
    return call("where", inside, _number(g, 0), g)


def hardshrink_backward(b: Builder, grad_out: Tensor, self: Tensor, lambd: float) -> Tensor:
    return elementwise(b, (grad_out, self), lambda g, x: _outside(g, x, lambd))


def softshrink_backward(b: Builder, grad_output: Tensor, self: Tensor, lambd: float) -> Tensor:
    return elementwise(b, (grad_output, self), lambda g, x: _outside(g, x, lambd))


def logit_backward(
    b: Builder, grad_output: Tensor, self: Tensor, eps: float | None = None
) -> Tensor:
    low, there = (0.0, math.nan) if eps is None else (float(eps), 0.0)

    def function(g: Value, x: Value) -> Value:
        outside = call("logical_or", _test("lt", x, low), _test("gt", x, 1 - low))
        slope = call("mul", x, call("sub", _number(x, 1), x))
        return call("where", outside, _number(g, there), call("truediv", g, slope))

    return elementwise(b, (grad_output, self), function)


def glu_backward(b: Builder, grad_output: Tensor, self: Tensor, dim: int) -> Tensor:
    """For the first half, the gate; for the gate, the first half times the gate's slope."""
    at, held = dim % self.rank, self.dtype.compute_dtype
    half = grad_output.size[at]

    def part(function: Callable[[Value, Value, Value], Value]) -> Tensor:
        def read(i: Index) -> Value:
            behind = (*i[:at], i[at] + half, *i[at + 1 :])
            g, x = (trees.upcast(t.at(i), held) for t in (grad_output, self))
            return function(g, x, call("sigmoid", trees.upcast(self.at(behind), held)))

        return Tensor(grad_output.size, self.dtype, read)

    first = part(lambda g, _, s: call("mul", g, s))
    second = part(lambda g, x, s: call("mul", _sigmoid(g, s), x))
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
            g, x, w = (trees.upcast(t.at(i), held) for t in (grad_output, self, wide))
            return function(g, x, w)

        return b.pointwise(self.size, self.dtype, read)

    by_self = made(lambda g, x, w: call("where", _test("gt", x, 0), g, call("mul", w, g)))
    by_weight = made(
        lambda g, x, _: call("where", _test("gt", x, 0), _number(x, 0), call("mul", x, g))
    )
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
        own = trees.upcast(
            target.at((sympy.Integer(0),) * target.rank if at == 0 else place), DType.I64
        )
        g = trees.upcast(grad_output.at(place if grad_output.rank == len(place) else ()), held)
        g = call("neg", g)
        if weight is not None:
            g = call("mul", g, trees.upcast(weight.at(i[at : at + 1]), held))
        if reduction == _MEAN:
            g = call("truediv", g, trees.upcast(total_weight.at(()), held))
        hit = call("eq", own, trees.index_value(i[at]))
        kept = call("ne", own, trees.const(ignore_index, DType.I64))
        return call("where", call("logical_and", hit, kept), g, const(0, held))

    return materialize(b, Tensor(self.size, self.dtype, read))
