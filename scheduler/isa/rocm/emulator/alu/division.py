"""The helpers of the compiler's division: scaling, the last step, special cases.

Sources: AMD CDNA3 and CDNA4 ISA, V_DIV_SCALE, V_DIV_FMAS, V_DIV_FIXUP; RDNA3 for the factor of
V_DIV_FMAS, which scales both ways. CDNA's text is wrong in two places: scaling up a divisor whose
reciprocal is denormal would give infinity, and it detects an overflow by the divisor's exponent,
which was tested before. Here the divisor is scaled down, and the quotient's exponent is tested.
With these the compiler's sequence is IEEE 754's division.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from scheduler.isa.rocm.emulator.alu.rounding import (
    fma16,
    scaled_fma32,
    scaled_fma64,
)
from scheduler.isa.rocm.emulator.alu.row import AluRow, Lanes, Type

Masks = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class _Format:
    """The figures that the documents give for a type: exponents are biased."""

    kind: Type
    unsigned: Any
    shift: int
    largest: int
    near_maximum: int
    tiny: int
    underflow: int
    scale: int


_SINGLE = _Format(Type.F32, np.uint32, 23, 255, 96, 23, -150, 64)
_DOUBLE = _Format(Type.F64, np.uint64, 52, 2047, 768, 53, -1075, 128)


def _exponent(values: Lanes, of: _Format) -> npt.NDArray[np.int64]:
    bits: Lanes = np.ascontiguousarray(values).view(of.unsigned)
    exponent: npt.NDArray[np.int64] = (bits >> of.unsigned(of.shift)).astype(np.int64) & of.largest
    return exponent


def _denormal(values: Lanes) -> Masks:
    is_denormal: Masks = (values != 0) & (np.abs(values) < np.finfo(values.dtype).tiny)
    return is_denormal


def _scale(of: _Format) -> Callable[[Lanes, Lanes, Lanes], tuple[Lanes, Masks]]:
    def compute(value: Lanes, divisor: Lanes, dividend: Lanes) -> tuple[Lanes, Masks]:
        value, divisor, dividend = np.broadcast_arrays(value, divisor, dividend)
        one = divisor.dtype.type(1)
        quotient_denormal = _denormal(dividend / divisor)
        inverse_denormal = _denormal(one / divisor)
        is_divisor, is_dividend = value == divisor, value == dividend
        zero = (dividend == 0) | (divisor == 0)
        far = _exponent(dividend, of) - _exponent(divisor, of) >= of.near_maximum
        cases = [
            zero,
            far,
            _denormal(divisor),
            inverse_denormal & quotient_denormal,
            inverse_denormal,
            quotient_denormal,
            _exponent(dividend, of) <= of.tiny,
        ]
        up, none = of.scale, 0
        powers: list[Any] = [
            none,
            np.where(is_divisor, up, none),
            up,
            np.where(is_divisor, -up, none),
            -up,
            np.where(is_dividend, up, none),
            up,
        ]
        power = np.select(cases, powers, none).astype(np.int32)
        post = np.select(cases, [False, True, False, True, False, True, False], False)
        scaled = np.ldexp(value, power).astype(value.dtype)
        return np.where(zero, value.dtype.type(np.nan), scaled), post.astype(np.bool_)

    return compute


def _step(of: _Format) -> Callable[[Lanes, Lanes, Lanes, Masks], Lanes]:
    fused = scaled_fma32 if of is _SINGLE else scaled_fma64
    bias = of.largest // 2

    def compute(a: Lanes, b: Lanes, c: Lanes, post: Masks) -> Lanes:
        power = np.where(_exponent(c, of) > bias, of.scale, -of.scale)
        return fused(a, b, c, np.where(post, power, 0).astype(np.int32))

    return compute


def fix_up(quotient: Lanes, divisor: Lanes, dividend: Lanes, of: _Format | None = None) -> Lanes:
    """Return the quotient, or IEEE 754's result for zeros, infinities and NaNs."""
    kind = quotient.dtype.type
    sign = np.where(np.signbit(divisor) != np.signbit(dividend), kind(-1), kind(1))
    nan, infinite = kind(np.nan), sign * kind(np.inf)
    cases = [
        np.isnan(dividend),
        np.isnan(divisor),
        ((divisor == 0) & (dividend == 0)) | (np.isinf(divisor) & np.isinf(dividend)),
        (divisor == 0) | np.isinf(dividend),
        np.isinf(divisor) | (dividend == 0),
    ]
    results = [dividend, divisor, nan, infinite, sign * kind(0)]
    if of is not None:
        cases.append(_exponent(dividend, of) - _exponent(divisor, of) < of.underflow)
        results.append(sign * kind(0))
        cases.append(~np.isfinite(quotient))
        results.append(infinite)
    fixed: Lanes = np.select(cases, results, np.copysign(np.abs(quotient), sign)).astype(kind)
    return fixed


def _rows(of: _Format) -> tuple[AluRow, ...]:
    kind = of.kind
    three = (kind, kind, kind)
    return (
        AluRow(f"v_div_scale_{kind}", (kind, Type.MASK), three, _scale(of)),
        AluRow(f"v_div_fmas_{kind}", (kind,), (*three, Type.MASK), _step(of)),
        AluRow(f"v_div_fixup_{kind}", (kind,), three, lambda q, d, n: fix_up(q, d, n, of)),
    )


_HALF = (Type.F16, Type.F16, Type.F16)

ROWS = (
    *_rows(_SINGLE),
    *_rows(_DOUBLE),
    AluRow("v_div_fixup_f16", (Type.F16,), _HALF, fix_up),
    AluRow("v_div_fixup_legacy_f16", (Type.F16,), _HALF, fix_up),
    AluRow("v_fma_legacy_f16", (Type.F16,), _HALF, fma16),
)
