"""The input pixels that each output pixel of a resampling is computed from, along one dimension.

An output pixel i is at position ``(i + 1/2) * ratio - 1/2`` of the input, or ``i * ratio`` if
corners are aligned. The ratio is a quotient of integers, so positions are index expressions and
their fractions are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import sympy

from scheduler.fuel import spend_fuel
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv, Mod, as_expr
from scheduler.ir.values import Cast, Value, call, const, index_value

_ZERO, _ONE = sympy.Integer(0), sympy.Integer(1)
#: Limit for a scale given as a number: its products with positions fit i64.
_MAX_DENOMINATOR = 1 << 30
_MAX_ENUMERATED = 1 << 16  # output pixels whose positions are compared one by one
_POSITION_TYPE = DType.F64


@dataclass(frozen=True)
class Ratio:
    """Input pixels per output pixel: ``numerator / denominator``.

    ``scale`` is torch's argument if the ratio is given as a number.
    """

    input_size: Expr
    output_size: Expr
    numerator: Expr
    denominator: Expr
    scale: float | None
    aligned: bool

    def source(self, output_pixel: Expr) -> tuple[Expr, Expr]:
        """The position of an output pixel in the input: numerator and denominator."""
        if self.aligned:
            return output_pixel * self.numerator, self.denominator
        return (2 * output_pixel + 1) * self.numerator - self.denominator, 2 * self.denominator


def make_ratio(
    input_size: Expr, output_size: Expr, scale: float | None, aligned: bool = False
) -> Ratio:
    """The ratio of one dimension as torch computes it: ``1 / scale`` if a scale is given."""
    if aligned:
        is_single = bool(output_size.is_Integer and output_size <= 1)
        last = output_size - 1
        numerator, denominator = input_size - 1, last if last.is_Integer else sympy.Max(last, _ONE)
        if is_single:
            numerator, denominator = _ZERO, _ONE
        return Ratio(input_size, output_size, numerator, denominator, None, True)
    if scale is None or scale <= 0:
        return Ratio(input_size, output_size, input_size, output_size, None, False)
    exact = Fraction(1 / float(scale)).limit_denominator(_MAX_DENOMINATOR)
    numerator, denominator = sympy.Integer(exact.numerator), sympy.Integer(exact.denominator)
    return Ratio(input_size, output_size, numerator, denominator, float(scale), False)


def fraction(numerator: Expr, denominator: Expr, dtype: DType) -> Value:
    """A quotient of integers as a floating-point value."""
    if denominator.is_Integer and numerator.is_Integer:
        return const(int(numerator) / int(denominator), dtype)
    value = Cast(index_value(numerator), dtype)
    divisor = (
        const(int(denominator), dtype)
        if denominator.is_Integer
        else Cast(index_value(denominator), dtype)
    )
    return value / divisor


#: Input pixels of an output pixel, with their weights.
Taps = list[tuple[Expr, Value]]


def linear(ratio: Ratio, output_pixel: Expr, dtype: DType) -> Taps:
    """The two pixels on either side."""
    numerator, denominator = ratio.source(output_pixel)
    if not ratio.aligned:
        numerator = sympy.Max(numerator, _ZERO)
    last = ratio.input_size - 1
    low = FloorDiv(numerator, denominator)
    t = fraction(Mod(numerator, denominator), denominator, dtype)
    high = sympy.Min(low + 1, last)
    if ratio.scale is not None:  # its last pixels may lie beyond the input's end
        low = sympy.Min(low, last)
    return [(low, 1 - t), (high, t)]


def cubic(ratio: Ratio, output_pixel: Expr, dtype: DType) -> Taps:
    """Four pixels by torch's cubic convolution (A = -3/4), with border pixels repeated."""
    numerator, denominator = ratio.source(output_pixel)
    low = FloorDiv(numerator, denominator)
    t = fraction(Mod(numerator, denominator), denominator, dtype)
    weights = cubic_weights(t)
    last = ratio.input_size - 1
    return [
        (sympy.Max(_ZERO, sympy.Min(low + k - 1, last)), weight) for k, weight in enumerate(weights)
    ]


def cubic_weights(t: Value) -> list[Value]:
    """The weights of the pixels at -1, 0, 1 and 2 for a position ``t`` after pixel 0."""
    distance_to_next = 1 - t
    return [
        cubic_far(t + 1, -0.75),
        cubic_near(t, -0.75),
        cubic_near(distance_to_next, -0.75),
        cubic_far(distance_to_next + 1, -0.75),
    ]


def _polynomial(x: Value, *factors: float) -> Value:
    result: Value = const(factors[0], x.dtype)
    for factor in factors[1:]:
        result = result * x
        result = result + factor if factor else result
    return result


def cubic_near(x: Value, a: float) -> Value:
    """The cubic convolution for distances from 0 to 1."""
    return _polynomial(x, a + 2, -(a + 3), 0.0, 1.0)


def cubic_far(x: Value, a: float) -> Value:
    """The cubic convolution for distances from 1 to 2."""
    return _polynomial(x, a, -5 * a, 8 * a, -4 * a)


def nearest(ratio: Ratio, exact: bool, wide: bool) -> Callable[[Expr], Expr | Value]:
    """Map an output pixel to the input pixel that torch selects, with the rounding of its kernels.

    ``wide``: the tensor is float64; its positions are computed in float64 and rounded to float32 at
    the end, those of other types in float32. For known sizes the map is an equivalent integer
    expression if there is one, otherwise a tree that rounds where torch does.
    """
    input_size, output_size, scale = ratio.input_size, ratio.output_size, ratio.scale
    if input_size.is_Integer and output_size.is_Integer and 0 < int(output_size) <= _MAX_ENUMERATED:
        expression = _matching_expression(int(input_size), int(output_size), scale, exact, wide)
        if expression is not None:
            return expression
    return lambda output_pixel: _rounded_pixel(ratio, output_pixel, exact, wide)


def _selected_pixels(
    input_size: int, output_size: int, scale: float | None, exact: bool, wide: bool
) -> Any:
    """The input pixels that torch selects (ATen/native/cpu/UpSampleKernel.cpp)."""
    float_type: Any = np.float64 if wide else np.float32
    step = float_type(1 / scale) if scale else float_type(input_size) / float_type(output_size)
    output_pixels = np.arange(output_size, dtype=np.float64)
    if exact:
        half = float_type(0.5)
        position = ((output_pixels + 0.5) * np.float64(step) - 0.5).astype(float_type) + half
    else:
        position = (output_pixels * np.float64(step)).astype(float_type)
    return np.minimum(np.floor(position.astype(np.float32)).astype(np.int64), input_size - 1)


def _matching_expression(
    input_size: int, output_size: int, scale: float | None, exact: bool, wide: bool
) -> Callable[[Expr], Expr] | None:
    """An integer expression that selects the same pixels, if one of the likely candidates does."""
    spend_fuel(1 + output_size // 64)
    selected = _selected_pixels(input_size, output_size, scale, exact, wide)
    step = Fraction(1 / scale) if scale else Fraction(input_size, output_size)
    rounded_step = Fraction(float(np.float32(step)))
    output_pixels = np.arange(output_size, dtype=object)
    for candidate in (step.limit_denominator(1 << 12), rounded_step):
        n, d = candidate.numerator, candidate.denominator
        for offset in (0, 1, (n * output_size * d) >> 48, (n * output_size) >> 23):
            start = (n if exact else 0) + offset
            multiplier, divisor = (2 * n, 2 * d) if exact else (n, d)
            if multiplier * output_size + start >= 1 << 62 or start < 0:
                continue
            values = np.minimum(
                (output_pixels * multiplier + start) // divisor, input_size - 1
            ).astype(np.int64)
            if np.array_equal(values, selected):
                is_clamped = bool(
                    ((output_pixels[-1] * multiplier + start) // divisor) >= input_size
                )
                return _quotient_map(multiplier, start, divisor, input_size if is_clamped else None)
    return None


def _quotient_map(
    multiplier: int, start: int, divisor: int, size: int | None
) -> Callable[[Expr], Expr]:
    def input_pixel_of(i: Expr) -> Expr:
        input_pixel = FloorDiv(i * multiplier + start, sympy.Integer(divisor))
        return input_pixel if size is None else sympy.Min(input_pixel, sympy.Integer(size - 1))

    return input_pixel_of


def _rounded_pixel(ratio: Ratio, output_pixel: Expr, exact: bool, wide: bool) -> Value:
    def round_if_narrow(value: Value) -> Value:
        return value if wide else call("float32_of", value)

    if ratio.scale is not None:
        step: Value = const(1 / ratio.scale, _POSITION_TYPE)
    else:
        step = fraction(ratio.input_size, ratio.output_size, _POSITION_TYPE)
    step = round_if_narrow(step)
    output_position = Cast(index_value(output_pixel), _POSITION_TYPE)
    if exact:
        half = const(0.5, _POSITION_TYPE)
        position = (output_position + half) * step
        position = round_if_narrow(position - half) + half
    else:
        position = output_position * step
    input_pixel = Cast(call("floor", call("float32_of", position)), DType.I64)
    return call("minimum", input_pixel, index_value(ratio.input_size - 1))


def tap_count(ratio: Ratio, reach: int) -> int:
    """The maximum number of input pixels of an antialiased output pixel; the ratio is known."""
    max_ratio = max(Fraction(int(ratio.numerator), int(ratio.denominator)), Fraction(1))
    return math.floor(2 * reach * max_ratio) + 2


def explicit_scales(scales: Any, rank: int) -> tuple[float | None, ...]:
    """The scale of each dimension; None if it follows from the sizes."""
    scale_of_dim = scales if isinstance(scales, tuple) else (scales,) * rank
    return tuple(None if s is None else float(as_expr(s)) for s in scale_of_dim)
