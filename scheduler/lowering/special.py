"""Special functions and numeric tests, composed of simpler pointwise functions."""

# ruff: noqa: ARG001 - rules have the signature of their op

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from scheduler.ir.dtypes import DType
from scheduler.ir.values import Call, Const, Value, call, const, upcast
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.pointwise import (
    Argument,
    binary_function,
    elementwise,
    extreme_function,
    formula_rule,
    promoted_type,
)
from scheduler.lowering.tensor import Tensor

_MAX_ORDER = 32  # of the multivariate gamma function, whose terms are unrolled


def logit(x: Value, eps: float | None = None) -> Value:
    """log(x / (1 - x)), with x clamped to [``eps``, 1 - ``eps``] if ``eps`` is given."""
    if eps is not None:
        x = call("minimum", call("maximum", x, eps), 1 - eps)
    return call("log", x / (1 - x))


def x_times_log(log: str) -> Callable[..., Tensor]:
    """x log(y), or x log(1 + y); 0 where x is 0, unless y is NaN."""

    def function(x: Value, y: Value) -> Value:
        product = x * call(log, y)
        result = call("where", call("eq", x, 0), 0, product)
        return call("where", call("isnan", y), y, result)

    return binary_function(function)


def entr(x: Value) -> Value:
    """-x log(x); 0 at 0, minus infinity below."""
    entropy = -(x * call("log", x))
    at_most_zero = call("where", call("eq", x, 0), const(0, x.dtype), const(-math.inf, x.dtype))
    positive = x > 0
    return call("where", call("isnan", x), x, call("where", positive, entropy, at_most_zero))


def sinc(x: Value) -> Value:
    """sin(pi x) / (pi x); 1 at 0."""
    scaled = x * math.pi
    return call("where", call("eq", x, 0), 1, call("sin", scaled) / scaled)


def spherical_bessel_j0(x: Value) -> Value:
    """sin(x) / x; 1 at 0, 0 at infinity."""
    finite = call("where", call("eq", x, 0), 1, call("sin", x) / x)
    return call("where", call("isinf", x), 0, finite)


def ndtr(x: Value) -> Value:
    """The normal distribution: erfc(-x / sqrt 2) / 2."""
    return call("erfc", x * -math.sqrt(0.5)) * 0.5


def log_ndtr(x: Value) -> Value:
    """The logarithm of ``ndtr``; far below 0 it uses the scaled complement, which does not
    underflow."""
    far = call("log", call("erfcx", x * -math.sqrt(0.5)) * 0.5) - x * x * 0.5
    near = call("log1p", call("erfc", x * math.sqrt(0.5)) * -0.5)
    return call("where", x < -1, far, near)


def multigammaln(x: Value, p: int) -> Value:
    """log of the multivariate gamma function: a sum of ``p`` terms, and a constant."""
    if not isinstance(p, int) or not 1 <= p <= _MAX_ORDER:
        raise Unsupported(f"a multivariate gamma function of order {p} is not supported")
    result: Value = const(p * (p - 1) / 4 * math.log(math.pi), x.dtype)
    for j in range(p):
        result = result + call("lgamma", x - j / 2)
    return result


def scaled_by(factor: float) -> Callable[..., Tensor]:
    """The rule of deg2rad and rad2deg."""

    def scaled(x: Value) -> Value:
        return x * factor

    return formula_rule(scaled, "self")


def logaddexp2(x: Value, y: Value) -> Value:
    """log2(2^x + 2^y); for two equal infinities, that infinity."""
    distance = -call("abs", x - y)
    tail = call("log1p", call("exp2", distance)) * (1 / math.log(2))
    equal = call("eq", x, y) & call("isinf", x)
    return call("where", equal, x, call("maximum", x, y) + tail)


def ldexp(b: Builder, self: Tensor, other: Argument) -> Tensor:
    """x 2^y."""
    return elementwise(b, (self, other), lambda x, y: x * call("exp2", y))


def float_power(b: Builder, self: Argument, exponent: Argument) -> Tensor:
    """A power in float64, for all argument types."""
    return elementwise(b, (self, exponent), lambda x, y: call("pow", x, y))


def heaviside(x: Value, at_zero: Value) -> Value:
    """0 below 0, 1 above, ``at_zero`` at 0."""
    return call("where", call("eq", x, 0), at_zero, upcast(x > 0, at_zero.dtype))


def fmax_or_fmin(op: str) -> Callable[..., Tensor]:
    """fmax, fmin: of a number and a NaN, the number."""

    def function(x: Value, y: Value) -> Value:
        result = call(extreme_function(op, x.dtype), x, y)
        if not x.dtype.is_float:
            return result
        return call("where", call("isnan", x), y, call("where", call("isnan", y), x, result))

    return binary_function(function)


def signbit(b: Builder, self: Tensor) -> Tensor:
    """Whether the sign bit is set, also for -0."""
    if self.dtype.is_float:
        return elementwise(b, (self,), lambda x: call("copysign", 1, x) < 0, self.dtype)
    if self.dtype is DType.BOOL:
        return Tensor(self.size, DType.BOOL, lambda _: Const(False, DType.BOOL))
    return elementwise(b, (self,), lambda x: x < 0, self.dtype)


def signed_inf_test(number: float) -> Callable[..., Tensor]:
    """isposinf, isneginf."""

    def rule(b: Builder, self: Tensor) -> Tensor:
        if not self.dtype.is_float:
            return Tensor(self.size, DType.BOOL, lambda _: Const(False, DType.BOOL))
        return elementwise(b, (self,), lambda x: call("eq", x, number), self.dtype)

    return rule


def isreal(b: Builder, self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        return elementwise(b, (self,), lambda z: call("eq", call("imag", z), 0), self.dtype)
    return Tensor(self.size, DType.BOOL, lambda _: Const(True, DType.BOOL))


def angle(b: Builder, self: Tensor) -> Tensor:
    """pi is_negative 0, else 0."""

    def function(x: Value) -> Value:
        is_negative = x < 0
        result = call("where", is_negative, const(math.pi, x.dtype), const(0, x.dtype))
        return call("where", call("isnan", x), x, result)

    return elementwise(b, (self,), function)


def isclose(
    b: Builder,
    self: Tensor,
    other: Tensor,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> Tensor:
    """``|x - y| <= atol + rtol |y|``, or equal."""
    dtype = promoted_type((self, other))
    compute_dtype = dtype if dtype.is_float else DType.F64

    def function(x: Value, y: Value) -> Value:
        close = call("eq", x, y)
        if equal_nan:
            are_nan = call("isnan", x) & call("isnan", y)
            close = close | are_nan
        if rtol == 0 and atol == 0:
            return close
        allowed = atol + call("abs", y * rtol)
        distance = call("abs", x - y)
        near = call("isfinite", distance) & (distance <= allowed)
        return close | near

    return elementwise(b, (self, other), function, compute_dtype)


def shift(op: str) -> Callable[..., Tensor]:
    """Shift by ``other`` bits. A negative shift, or one of at least the width, removes all bits:
    the result is 0, or the sign for right shifts. Floats are multiplied by (right: divided by) a
    power of 2."""

    def rule(b: Builder, self: Argument, other: Argument) -> Tensor:
        dtype = b.output_meta().dtype
        if dtype.is_float:
            sign = "mul" if op == "lshift" else "truediv"
            return elementwise(b, (self, other), lambda x, y: call(sign, x, call("exp2", y)))
        bits = dtype.itemsize * 8

        def function(x: Value, y: Value) -> Value:
            is_in_range = (y >= 0) & (y < bits)
            shifted = call(op, x, call("where", is_in_range, y, 0))
            if op == "lshift":
                return call("where", is_in_range, shifted, 0)
            sign_bits = call("where", x < 0, const(0, x.dtype) - 1, 0)
            return call("where", is_in_range, shifted, sign_bits)

        return elementwise(b, (self, other), function)

    return rule


def log_sigmoid_forward(b: Builder, self: Tensor) -> tuple[Tensor, Tensor]:
    """The logarithm of the sigmoid, and exp(-|x|), which its gradient uses."""
    exp_of_magnitude: Callable[[Value], Value] = lambda x: call("exp", -call("abs", x))  # noqa: E731

    def function(x: Value) -> Value:
        return call("minimum", x, 0) - call("log1p", exp_of_magnitude(x))

    return elementwise(b, (self,), function), elementwise(b, (self,), exp_of_magnitude)


def nextafter(b: Builder, self: Tensor, other: Tensor) -> Tensor:
    """The next value in the element's own type: kernels hold narrow types in f32, whose neighbours
    differ."""
    dtype = b.output_meta().dtype
    if dtype.is_float8:
        raise Unsupported(f"nextafter in {dtype.label} is not supported")
    if dtype.compute_dtype is not dtype:
        return elementwise(b, (self, other), lambda x, y: _next_narrow(x, y, dtype))
    return elementwise(b, (self, other), lambda x, y: call("nextafter", x, y))


#: The smallest positive number of the types that float32 represents exactly.
_MIN_POSITIVE = {DType.F16: 2.0**-24, DType.BF16: 2.0**-133}


def _next_narrow(x: Value, y: Value, dtype: DType) -> Value:
    """The neighbour in a type that float32 represents exactly, computed on the float32's bits.
    Below the smallest normal number (float16's subnormals are normal in float32) the spacing is
    constant."""
    spacing = 2**13 if dtype is DType.F16 else 2**16
    min_positive = _MIN_POSITIVE[dtype]
    min_normal = const(min_positive / (2 * dtype.eps), x.dtype)
    magnitude, is_away = call("abs", x), call("eq", y > x, x > 0)

    def stepped(step: int, comparison: str) -> Value:
        bits = Call("bit_cast", (magnitude,), DType.I32) + step * spacing
        subnormal = magnitude + step * min_positive
        normal = Call("bit_cast", (bits,), DType.F32)
        return call("where", call(comparison, magnitude, min_normal), subnormal, normal)

    is_largest = magnitude >= dtype.largest
    increased = call("where", is_largest, math.inf, stepped(1, "lt"))
    neighbour = call("where", is_away, increased, stepped(-1, "le"))
    neighbour = call("copysign", neighbour, x)
    neighbour = call("where", call("eq", x, 0), call("copysign", min_positive, y), neighbour)
    largest = call("copysign", dtype.largest, x)
    neighbour = call("where", call("isinf", x), largest, neighbour)
    neighbour = call("where", call("eq", x, y), y, neighbour)
    return call("where", call("isnan", x), x, call("where", call("isnan", y), y, neighbour))


def gcd(x: Value, y: Value) -> Value:
    return call("gcd", x, y)


def lcm(x: Value, y: Value) -> Value:
    """|x / gcd(x, y) y|; 0 where both are 0."""
    common = call("gcd", x, y)
    both_zero = call("eq", common, 0)
    divisor = call("where", both_zero, 1, common)
    return call("where", both_zero, 0, call("abs", call("truncdiv", x, divisor) * y))


def positive(b: Builder, self: Tensor, **_: Any) -> Tensor:
    return self
