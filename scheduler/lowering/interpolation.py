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
_DENOMINATOR = 1 << 30  # limit for a scale given as a number: its products with positions fit i64
_MAX_ENUMERATED = 1 << 16  # output pixels whose positions are compared one by one
_WIDE = DType.F64


@dataclass(frozen=True)
class Ratio:
    """Input pixels per output pixel: ``above / below``.

    ``size`` and ``made`` are the sizes of input and output, ``scale`` is torch's argument if the
    ratio is given as a number.
    """

    size: Expr
    made: Expr
    above: Expr
    below: Expr
    scale: float | None
    aligned: bool

    def source(self, place: Expr) -> tuple[Expr, Expr]:
        """The position of an output pixel in the input: numerator and denominator."""
        if self.aligned:
            return place * self.above, self.below
        return (2 * place + 1) * self.above - self.below, 2 * self.below


def ratio(size: Expr, made: Expr, scale: float | None, aligned: bool = False) -> Ratio:
    """The ratio of one dimension as torch computes it: ``1 / scale`` if a scale is given."""
    if aligned:
        one = bool(made.is_Integer and made <= 1)
        last = made - 1
        above, below = size - 1, last if last.is_Integer else sympy.Max(last, _ONE)
        if one:
            above, below = _ZERO, _ONE
        return Ratio(size, made, above, below, None, True)
    if scale is None or scale <= 0:
        return Ratio(size, made, size, made, None, False)
    exact = Fraction(1 / float(scale)).limit_denominator(_DENOMINATOR)
    above, below = sympy.Integer(exact.numerator), sympy.Integer(exact.denominator)
    return Ratio(size, made, above, below, float(scale), False)


def fraction(above: Expr, below: Expr, dtype: DType) -> Value:
    """A quotient of integers as a floating-point value."""
    if below.is_Integer and above.is_Integer:
        return const(int(above) / int(below), dtype)
    value = Cast(index_value(above), dtype)
    divisor = const(int(below), dtype) if below.is_Integer else Cast(index_value(below), dtype)
    return value / divisor


#: Input pixels of an output pixel, with their weights.
Taps = list[tuple[Expr, Value]]


def linear(along: Ratio, place: Expr, dtype: DType) -> Taps:
    """The two pixels on either side."""
    above, below = along.source(place)
    if not along.aligned:
        above = sympy.Max(above, _ZERO)
    last = along.size - 1
    low, t = FloorDiv(above, below), fraction(Mod(above, below), below, dtype)
    high = sympy.Min(low + 1, last)
    if along.scale is not None:  # its last pixels may lie beyond the input's end
        low = sympy.Min(low, last)
    return [(low, 1 - t), (high, t)]


def cubic(along: Ratio, place: Expr, dtype: DType) -> Taps:
    """Four pixels by torch's cubic convolution (A = -3/4), with border pixels repeated."""
    above, below = along.source(place)
    low, t = FloorDiv(above, below), fraction(Mod(above, below), below, dtype)
    weights = cubic_weights(t)
    last = along.size - 1
    return [
        (sympy.Max(_ZERO, sympy.Min(low + k - 1, last)), weight) for k, weight in enumerate(weights)
    ]


def cubic_weights(t: Value) -> list[Value]:
    """The weights of the pixels at -1, 0, 1 and 2 for a position ``t`` after pixel 0."""
    rest = 1 - t
    return [
        cubic_far(t + 1, -0.75),
        cubic_near(t, -0.75),
        cubic_near(rest, -0.75),
        cubic_far(rest + 1, -0.75),
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


def nearest(along: Ratio, exact: bool, wide: bool) -> Callable[[Expr], Expr | Value]:
    """Map an output pixel to the input pixel that torch selects, with the rounding of its kernels.

    ``wide``: the tensor is float64; its positions are computed in float64 and rounded to float32 at
    the end, those of other types in float32. For known sizes the map is an equivalent integer
    expression if there is one, otherwise a tree that rounds where torch does.
    """
    size, result, scale = along.size, along.made, along.scale
    if size.is_Integer and result.is_Integer and 0 < int(result) <= _MAX_ENUMERATED:
        found = _expression(int(size), int(result), scale, exact, wide)
        if found is not None:
            return found
    return lambda place: _rounded(along, place, exact, wide)


def _places(size: int, made: int, scale: float | None, exact: bool, wide: bool) -> Any:
    """The input pixels that torch selects (ATen/native/cpu/UpSampleKernel.cpp)."""
    kind: Any = np.float64 if wide else np.float32
    step = kind(1 / scale) if scale else kind(size) / kind(made)
    at = np.arange(made, dtype=np.float64)
    if exact:
        position = ((at + 0.5) * np.float64(step) - 0.5).astype(kind) + kind(0.5)
    else:
        position = (at * np.float64(step)).astype(kind)
    return np.minimum(np.floor(position.astype(np.float32)).astype(np.int64), size - 1)


def _expression(
    size: int, made: int, scale: float | None, exact: bool, wide: bool
) -> Callable[[Expr], Expr] | None:
    """An integer expression that selects the same pixels, if one of the likely candidates does."""
    spend_fuel(1 + made // 64)
    places = _places(size, made, scale, exact, wide)
    step = Fraction(1 / scale) if scale else Fraction(size, made)
    rounded = Fraction(float(np.float32(step)))
    at = np.arange(made, dtype=object)
    for candidate in (step.limit_denominator(1 << 12), rounded):
        n, d = candidate.numerator, candidate.denominator
        for more in (0, 1, (n * made * d) >> 48, (n * made) >> 23):
            first = (n if exact else 0) + more
            by, over = (2 * n, 2 * d) if exact else (n, d)
            if by * made + first >= 1 << 62 or first < 0:
                continue
            values = np.minimum((at * by + first) // over, size - 1).astype(np.int64)
            if np.array_equal(values, places):
                ends = bool(((at[-1] * by + first) // over) >= size)
                return _quotient(by, first, over, size if ends else None)
    return None


def _quotient(by: int, first: int, over: int, size: int | None) -> Callable[[Expr], Expr]:
    def place(i: Expr) -> Expr:
        found = FloorDiv(i * by + first, sympy.Integer(over))
        return found if size is None else sympy.Min(found, sympy.Integer(size - 1))

    return place


def _rounded(along: Ratio, place: Expr, exact: bool, wide: bool) -> Value:
    def kept(value: Value) -> Value:
        return value if wide else call("float32_of", value)

    if along.scale is not None:
        step: Value = const(1 / along.scale, _WIDE)
    else:
        step = fraction(along.size, along.made, _WIDE)
    step = kept(step)
    at = Cast(index_value(place), _WIDE)
    if exact:
        half = const(0.5, _WIDE)
        position = (at + half) * step
        position = kept(position - half) + half
    else:
        position = at * step
    found = Cast(call("floor", call("float32_of", position)), DType.I64)
    return call("minimum", found, index_value(along.size - 1))


def tap_count(along: Ratio, reach: int) -> int:
    """The maximum number of input pixels of an antialiased output pixel; the ratio is known."""
    widest = max(Fraction(int(along.above), int(along.below)), Fraction(1))
    return math.floor(2 * reach * widest) + 2


def explicit_scales(scales: Any, rank: int) -> tuple[float | None, ...]:
    """The scale of each dimension; None if it follows from the sizes."""
    given = scales if isinstance(scales, tuple) else (scales,) * rank
    return tuple(None if s is None else float(as_expr(s)) for s in given)
