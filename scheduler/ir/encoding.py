"""Element values on the host: rounding to a type, and the bits of types that NumPy lacks.

Arrays of bfloat16 are ``uint16``, the upper half of a float32's bits: 8 bits of exponent and 7 of
fraction. Arrays of 8-bit floats are ``uint8``; their names and codes are torch's (and the Open
Compute Project's, OFP8 and MX): ``e4m3fn`` has 4 bits of exponent and 3 of fraction, NaN and no
infinity; ``e5m2`` is the upper half of an f16; ``fnuz`` ones have one NaN in place of -0 and a bias
larger by one; ``e8m0fnu`` is a power of two, a scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from scheduler.ir.dtypes import DType

_BFLOAT16_NAN = 0x7FC0
_SIGN = 0x80


def float32_to_bfloat16(values: npt.NDArray[Any]) -> npt.NDArray[np.uint16]:
    """Return the bits of the nearest bfloat16 of each value, ties to even, any shape.

    Values beyond the largest finite one become infinite; every NaN becomes the quiet NaN. Other
    types are converted to float32 first.
    """
    single = np.ascontiguousarray(values, dtype=np.float32).reshape(np.shape(values))
    bits = single.view(np.uint32)
    # Half of the last place that stays, less one unless that place is odd: ties go to even.
    rounding = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    upper = ((bits + rounding) >> np.uint32(16)).astype(np.uint16)
    return np.where(np.isnan(single), np.uint16(_BFLOAT16_NAN), upper)


def bfloat16_to_float32(bits: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    """Return the values of bfloat16 bits, exactly."""
    bits32 = np.ascontiguousarray(bits, dtype=np.uint16).astype(np.uint32) << np.uint32(16)
    return bits32.view(np.float32).reshape(np.shape(bits))


@dataclass(frozen=True)
class Float8:
    """A signed format.

    Codes are without sign: ``largest`` of the largest number, ``overflow`` of larger numbers (the
    same if conversions saturate), ``nan`` of NaN. A format ``without_negative_zero`` uses the code
    of -0 for NaN of either sign.
    """

    fraction: int
    bias: int
    largest: int
    overflow: int
    nan: int
    without_negative_zero: bool = False

    @cached_property
    def values(self) -> npt.NDArray[np.float32]:
        """The number that each of the 256 codes means."""
        codes = np.arange(128)
        exponent, fraction = codes >> self.fraction, codes & ((1 << self.fraction) - 1)
        normal = exponent > 0
        significand = fraction / (1 << self.fraction) + normal
        magnitudes = significand * 2.0 ** (np.where(normal, exponent, 1) - self.bias)
        if not self.without_negative_zero:
            magnitudes[self.largest + 1 :] = np.nan
            if self.overflow > self.largest:
                magnitudes[self.overflow] = np.inf
        both = np.concatenate([magnitudes, -magnitudes]).astype(np.float32)
        if self.without_negative_zero:
            both[self.nan] = np.nan
        return both

    @cached_property
    def _halfway(self) -> npt.NDArray[np.float64]:
        """The midpoints between consecutive nonnegative numbers, including a hypothetical number
        after the largest."""
        magnitudes = self.values[: self.largest + 1].astype(np.float64)
        following = np.append(magnitudes[1:], 2 * magnitudes[-1] - magnitudes[-2])
        return np.asarray((magnitudes + following) / 2)

    def encode(self, values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
        """Return the codes of the nearest numbers, ties to even codes, like torch's conversion from
        float32; any shape."""
        single = np.asarray(values, dtype=np.float32)
        magnitude = np.abs(single).astype(np.float64)
        below = np.searchsorted(self._halfway, magnitude, side="left")
        above = np.searchsorted(self._halfway, magnitude, side="right")
        code = np.where(below % 2 == 0, below, above)
        code = np.where(code > self.largest, self.overflow, code)
        signed = code + np.where(np.signbit(single), _SIGN, 0)
        if self.without_negative_zero:
            signed = np.where((code == 0) | (code == self.overflow), code, signed)
            return np.where(np.isnan(single), self.nan, signed).astype(np.uint8)
        nan = self.nan + np.where(np.signbit(single), _SIGN, 0)
        return np.where(np.isnan(single), nan, signed).astype(np.uint8)

    def decode(self, codes: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """The numbers that codes mean."""
        return self.values[codes]


class PowerOfTwo:
    """``e8m0fnu``: 2^(code - 127), 255 is NaN; no sign and no zero."""

    @cached_property
    def values(self) -> npt.NDArray[np.float32]:
        """The number that each of the 256 codes means."""
        powers = np.ldexp(np.float64(1), np.arange(256) - 127)
        powers[255] = np.nan
        return powers.astype(np.float32)

    def encode(self, values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
        """Return the codes of torch's conversion from float32: the exponent, plus one if the
        fraction is at least half (at the least exponent: more than half). Signs are dropped;
        infinities become NaN."""
        single = np.ascontiguousarray(values, dtype=np.float32).reshape(np.shape(values))
        bits = single.view(np.uint32) & np.uint32(0x7FFFFFFF)
        exponent, fraction = bits >> np.uint32(23), bits & np.uint32(0x7FFFFF)
        half = np.uint32(0x400000)
        up = (fraction > half) | ((fraction == half) & (exponent > 0))
        return np.where(exponent == 255, exponent, exponent + up).astype(np.uint8)

    def decode(self, codes: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """The numbers that codes mean."""
        return self.values[codes]


#: A format: it encodes and decodes.
Format: TypeAlias = Float8 | PowerOfTwo

E4M3FN = Float8(3, 7, largest=0x7E, overflow=0x7E, nan=0x7F)
E5M2 = Float8(2, 15, largest=0x7B, overflow=0x7C, nan=0x7F)
E4M3FNUZ = Float8(3, 8, largest=0x7F, overflow=0x80, nan=0x80, without_negative_zero=True)
E5M2FNUZ = Float8(2, 16, largest=0x7F, overflow=0x80, nan=0x80, without_negative_zero=True)
E8M0FNU = PowerOfTwo()

_FLOAT8: Mapping[DType, Format] = {
    DType.F8E4M3FN: E4M3FN,
    DType.F8E5M2: E5M2,
    DType.F8E4M3FNUZ: E4M3FNUZ,
    DType.F8E5M2FNUZ: E5M2FNUZ,
    DType.F8E8M0FNU: E8M0FNU,
}


def to_bits(values: npt.ArrayLike, dtype: DType) -> npt.NDArray[Any]:
    """Return the bits of the nearest values of a type that NumPy lacks; through float32."""
    if dtype is DType.BF16:
        return float32_to_bfloat16(np.asarray(values))
    return _FLOAT8[dtype].encode(np.asarray(values))


def from_bits(bits: npt.NDArray[Any], dtype: DType) -> npt.NDArray[np.float32]:
    """Return the values of bits of a type that NumPy lacks, exactly."""
    if dtype is DType.BF16:
        return bfloat16_to_float32(bits.astype(np.uint16, copy=False))
    return _FLOAT8[dtype].decode(bits.astype(np.uint8, copy=False))


def encode_values(values: npt.ArrayLike, dtype: DType) -> npt.NDArray[Any]:
    """Round values to the type's host representation, in a copy."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if dtype.is_stored_as_bits:
            return to_bits(values, dtype)
        return np.array(values, dtype=dtype.numpy)


def widen(array: npt.NDArray[Any], dtype: DType) -> npt.NDArray[Any]:
    """Convert floats to float64 and complex numbers to complex128; others are unchanged."""
    if dtype.is_stored_as_bits:
        return from_bits(array, dtype).astype(np.float64)
    return array.astype(dtype.reference_numpy)


def round_to_dtype(values: npt.ArrayLike, dtype: DType) -> npt.NDArray[Any]:
    """Round to a float or complex type; the result is float64 or complex128. Other types do not
    change the values.

    Types that NumPy lacks are rounded through float32, as in a kernel's conversion.
    """
    return widen(encode_values(values, dtype), dtype) if dtype.is_inexact else np.asarray(values)
