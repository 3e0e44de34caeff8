"""Rounding to 8-, 6- and 4-bit floats: to nearest, and stochastically.

Overflow is as with FP16_OVFL = 0, the initial state of kernels: NaN or infinity for 8 bits, the
largest number for 6 and 4 bits. Stochastic rounding adds the random number, as a fraction of the
result's last digit, and truncates; the documents' text for 8 bits would lose the carry into the
exponent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from scheduler.isa.rocm.emulator.alu.row import Lanes

_RANDOM = 2.0**-32


@dataclass(frozen=True)
class MinifloatFormat:
    """``largest`` is the code of the largest number, ``overflow`` that of larger values, ``nan``
    that of NaN, all without sign. Without a negative zero, its code is NaN's, for either sign."""

    exponent: int
    fraction: int
    bias: int
    largest: int
    overflow: int
    nan: int
    without_negative_zero: bool = False

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.fraction

    @cached_property
    def _magnitudes(self) -> Lanes:
        codes = np.arange(self.largest + 2)
        power, part = codes >> self.fraction, codes & ((1 << self.fraction) - 1)
        normal = power > 0
        significand = part / (1 << self.fraction) + normal
        magnitudes: Lanes = significand * 2.0 ** (np.where(normal, power, 1) - self.bias)
        return magnitudes

    def round_nearest(self, values: Lanes) -> Lanes:
        """Return codes of the nearest numbers, ties to even."""
        halfway = (self._magnitudes[:-1] + self._magnitudes[1:]) / 2
        size = np.abs(values.astype(np.float64))
        below = np.searchsorted(halfway, size, side="left")
        above = np.searchsorted(halfway, size, side="right")
        return self._apply_specials(np.where(below % 2 == 0, below, above), values)

    def round_stochastic(self, values: Lanes, random: Lanes) -> Lanes:
        """Return codes of one of the two neighbours, chosen by 32 random bits."""
        size = np.abs(values.astype(np.float64))
        code = np.searchsorted(self._magnitudes, size, side="right") - 1
        code = np.minimum(code, self.largest)
        low, high = self._magnitudes[code], self._magnitudes[code + 1]
        share = (size - low) / (high - low)
        up = share + random.astype(np.float64) * _RANDOM >= 1
        return self._apply_specials(np.where(size > high, self.largest + 1, code + up), values)

    def _apply_specials(self, code: Lanes, values: Lanes) -> Lanes:
        code = np.where(code > self.largest, self.overflow, code)
        code = np.where(np.isnan(values), self.nan, code)
        sign = np.signbit(values).astype(np.int64) << (self.bits - 1)
        if self.without_negative_zero:
            sign = np.where((code == 0) | (code == self.nan), 0, sign)
        result: Lanes = (code | sign).astype(np.uint32)
        return result


#: OCP's formats, of gfx950 and gfx12. The documents do not define NaN in formats without one.
FORMATS: Mapping[str, MinifloatFormat] = {
    "fp8": MinifloatFormat(4, 3, 7, largest=0x7E, overflow=0x7F, nan=0x7F),
    "bf8": MinifloatFormat(5, 2, 15, largest=0x7B, overflow=0x7C, nan=0x7F),
    "fp6": MinifloatFormat(2, 3, 1, largest=0x1F, overflow=0x1F, nan=0x1F),
    "bf6": MinifloatFormat(3, 2, 3, largest=0x1F, overflow=0x1F, nan=0x1F),
    "fp4": MinifloatFormat(2, 1, 1, largest=0x7, overflow=0x7, nan=0x7),
}
#: The 8-bit formats of gfx940 to gfx942.
FNUZ_FORMATS: Mapping[str, MinifloatFormat] = {
    "fp8": MinifloatFormat(
        4, 3, 8, largest=0x7F, overflow=0x80, nan=0x80, without_negative_zero=True
    ),
    "bf8": MinifloatFormat(
        5, 2, 16, largest=0x7F, overflow=0x80, nan=0x80, without_negative_zero=True
    ),
}
