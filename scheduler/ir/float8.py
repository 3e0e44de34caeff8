"""8-bit floats on the host, which NumPy lacks: arrays are ``uint8``.

Names and codes are torch's (and the Open Compute Project's, OFP8 and MX): ``e4m3fn`` has 4 bits of
exponent and 3 of fraction, NaN and no infinity; ``e5m2`` is the upper half of an f16; ``fnuz`` ones
have one NaN in place of -0 and a bias larger by one; ``e8m0fnu`` is a power of two, a scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

_SIGN = 0x80


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
