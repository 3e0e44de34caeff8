"""Sums and products rounded once, and rounding to types that NumPy lacks.

A fused multiply-add of f32 or f16 is computed in float64, where the product is exact. Rounding the
sum to float64 first may move it exactly between two results, from where it is rounded the wrong
way. The few sums at such a midpoint, and those with fewer digits than usual, are recomputed and
rounded to odd: a float64 with an odd last digit is never a midpoint (S. Boldo, G. Melquiond:
Emulation of FMA and correctly rounded sums, 2008).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from scheduler.isa.rocm.emulator.alu.row import Lanes

Doubles = npt.NDArray[np.float64]

_SPLIT = 134217729.0  # 2**27 + 1: cuts a float64 into two halves of 26 digits
# Products and sums of numbers in this range have no part that float64 cannot represent.
_SMALLEST, _LARGEST = 2.0**-400, 2.0**400


def add_to_odd(a: Lanes, b: Lanes) -> Doubles:
    """Return ``a + b`` in float64; if it is inexact, the neighbour whose last digit is odd."""
    total = np.add(a, b, dtype=np.float64)
    part = total - a
    error = (a - (total - part)) + (b - part)  # less than half of the total's last digit
    bits = np.atleast_1d(total).view(np.int64).reshape(np.shape(total))
    even = (bits & 1) == 0
    inexact = (error != 0) & np.isfinite(error) & np.isfinite(total)
    towards_zero = np.signbit(error) != np.signbit(total)
    moved = np.where(towards_zero, bits - 1, bits + 1)
    return np.ascontiguousarray(np.where(inexact & even, moved, bits)).view(np.float64)


def fma32(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Return ``a * b + c`` of float32, rounded once to float32."""
    return _narrow_fma(a, b, c, np.float32, 29, 2.0**-126)


def fma16(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Return ``a * b + c`` of float16, rounded once to float16."""
    return _narrow_fma(a, b, c, np.float16, 42, 2.0**-14)


def _narrow_fma(
    a: Lanes, b: Lanes, c: Lanes, result: type[np.floating[Any]], dropped: int, normal: float
) -> Lanes:
    product = np.multiply(a, b, dtype=np.float64)
    total = np.atleast_1d(np.add(product, c, dtype=np.float64))
    rounded: Lanes = total.astype(result)
    middle = 1 << (dropped - 1)
    doubtful = (total.view(np.int64) & ((1 << dropped) - 1)) == middle
    doubtful |= (np.abs(total) < normal) & (total != 0)
    if doubtful.any():
        again = add_to_odd(product, c.astype(np.float64)).astype(result)
        rounded = np.where(doubtful, again, rounded)
    return rounded.reshape(np.shape(product + c)) if not np.ndim(product) else rounded


def scaled_fma32(a: Lanes, b: Lanes, c: Lanes, exponent: Lanes) -> Lanes:
    """Return ``(a * b + c) * 2**exponent`` of float32, rounded once."""
    product = np.multiply(a, b, dtype=np.float64)
    exact = add_to_odd(product, c.astype(np.float64))
    scaled: Lanes = np.ldexp(exact, exponent).astype(np.float32)
    return scaled


def fma64(a: Lanes, b: Lanes, c: Lanes) -> Doubles:
    """Return ``a * b + c`` of float64, rounded once."""
    return scaled_fma64(a, b, c, np.int32(0))


def scaled_fma64(a: Lanes, b: Lanes, c: Lanes, exponent: Any) -> Doubles:
    """Return ``(a * b + c) * 2**exponent`` of float64, rounded once."""
    a, b, c, exponent = np.broadcast_arrays(a, b, c, exponent)
    plain: Doubles = np.ldexp(a * b + c, exponent)
    usual = (exponent == 0) & _usual(a) & _usual(b) & (_usual(c) | (c == 0))
    high = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    low = a_low * b_low - (((high - a_high * b_high) - a_low * b_high) - a_high * b_low)
    upper, lower = _two_sum(c, low)
    total, rest = _two_sum(high, upper)
    exact = np.where(usual, total + add_to_odd(rest, lower), plain)
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    for index in zip(*np.nonzero(finite & ~usual), strict=True):
        exact[index] = _exact_fma(
            float(a[index]), float(b[index]), float(c[index]), int(exponent[index])
        )
    return exact


def _usual(values: Lanes) -> npt.NDArray[np.bool_]:
    size = np.abs(values)
    usual: npt.NDArray[np.bool_] = (size > _SMALLEST) & (size < _LARGEST)
    return usual


def _two_sum(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _halves(values: Doubles) -> tuple[Doubles, Doubles]:
    scaled = values * _SPLIT
    high = scaled - (scaled - values)
    return high, values - high


def _exact_fma(a: float, b: float, c: float, exponent: int) -> float:
    """Compute with fractions, for numbers of any size."""
    exact = (Fraction(a) * Fraction(b) + Fraction(c)) * Fraction(2) ** exponent
    if not exact:
        return float(np.float64(a) * np.float64(b) + np.float64(c))
    try:
        return float(exact)
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")


def to_bfloat16(values: Lanes) -> Lanes:
    """Round float32 or float64 to the nearest bfloat16, stored as float32; ties to even."""
    single = to_odd32(values) if np.asarray(values).dtype == np.float64 else values
    bits = np.atleast_1d(single).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    quiet = (bits | 0x00400000) & np.uint32(0xFFFF0000)
    result: Lanes = np.where(np.isnan(single), quiet, rounded).astype(np.uint32).view(np.float32)
    return result.reshape(np.shape(values))


def bfloat16_bits(values: Lanes) -> npt.NDArray[np.uint16]:
    """Convert float32 to the bits of the nearest bfloat16."""
    bits = np.ascontiguousarray(to_bfloat16(values)).view(np.uint32) >> np.uint32(16)
    return bits.astype(np.uint16)


def to_odd32(values: Doubles) -> Lanes:
    """Convert float64 to float32; if it is inexact, to the neighbour whose last digit is odd."""
    single = np.atleast_1d(values).astype(np.float32)
    bits = single.view(np.int32)
    inexact = np.isfinite(single) & (single != values) & ~np.isnan(single)
    up = (np.abs(single) < np.abs(values)) & inexact & ((bits & 1) == 0)
    down = (np.abs(single) > np.abs(values)) & inexact & ((bits & 1) == 0)
    moved = bits + up.astype(np.int32) - down.astype(np.int32)
    # Values beyond the range are infinite in any narrower type too.
    result: Lanes = moved.view(np.float32).reshape(np.shape(values))
    return result


def towards_zero32(values: Doubles) -> Lanes:
    """Truncate float64 to float32."""
    single = np.atleast_1d(values).astype(np.float32)
    beyond = np.isfinite(values) & (np.abs(single) > np.abs(values))
    moved = single.view(np.int32) - beyond.astype(np.int32)
    result: Lanes = moved.view(np.float32).reshape(np.shape(values))
    return result


def towards_zero16(values: Lanes) -> Lanes:
    """Truncate float32 to float16; beyond the range return the largest number."""
    half = np.atleast_1d(values).astype(np.float16)
    beyond = np.isfinite(values) & (np.abs(half.astype(np.float32)) > np.abs(values))
    moved = half.view(np.int16) - beyond.astype(np.int16)
    result: Lanes = moved.view(np.float16).reshape(np.shape(values))
    return result
