"""Arithmetic of f16, bf16, f32 and f64: sums, products, extremes, rounding to whole numbers.

Denormals are kept, as in HIP kernels. Sources: AMD's ISA documents (CDNA 2 to 4, RDNA 3 and 4), the
chapter on vector instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from scheduler.isa.rocm.emulator.alu.rounding import fma16, fma32, fma64, to_bfloat16
from scheduler.isa.rocm.emulator.alu.row import AluRow, Lanes, Type

FMA: dict[Type, Callable[..., Lanes]] = {
    Type.F16: fma16,
    Type.F32: fma32,
    Type.F64: fma64,
    Type.BF16: lambda a, b, c: to_bfloat16(
        fma64(a.astype(np.float64), b.astype(np.float64), c.astype(np.float64))
    ),
}
FLOATS = (Type.F16, Type.F32, Type.F64)


def minimum_number(a: Lanes, b: Lanes) -> Lanes:
    """Return the smaller; the number if the other is NaN; -0 is below 0."""
    smaller: Lanes = np.fmin(a, b)
    zeros = (a == 0) & (b == 0)
    return np.where(zeros, -((-a) + (-b)), smaller) if zeros.any() else smaller


def maximum_number(a: Lanes, b: Lanes) -> Lanes:
    """Return the larger; the number if the other is NaN; 0 is above -0."""
    larger: Lanes = np.fmax(a, b)
    zeros = (a == 0) & (b == 0)
    return np.where(zeros, a + b, larger) if zeros.any() else larger


def minimum(a: Lanes, b: Lanes) -> Lanes:
    """Return the smaller; NaN if either is NaN; -0 is below 0."""
    zeros = (a == 0) & (b == 0)
    return np.where(zeros, -((-a) + (-b)), np.minimum(a, b))


def maximum(a: Lanes, b: Lanes) -> Lanes:
    """Return the larger; NaN if either is NaN; 0 is above -0."""
    zeros = (a == 0) & (b == 0)
    return np.where(zeros, a + b, np.maximum(a, b))


def median(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Return the middle value; the smallest number if one is NaN."""
    middle = maximum_number(minimum_number(a, b), minimum_number(maximum_number(a, b), c))
    nan = np.isnan(a) | np.isnan(b) | np.isnan(c)
    return np.where(nan, minimum_number(minimum_number(a, b), c), middle) if nan.any() else middle


def fraction(a: Lanes) -> Lanes:
    """Return ``a - floor(a)``, always below 1."""
    one = a.dtype.type(1)
    part: Lanes = np.minimum(a - np.floor(a), np.nextafter(one, a.dtype.type(0)))
    return np.where(np.isinf(a), a.dtype.type(np.nan), part)


def legacy_product(a: Lanes, b: Lanes) -> Lanes:
    """Return the product, where 0 times anything is 0, including infinity and NaN."""
    return np.where((a == 0) | (b == 0), a.dtype.type(0), a * b)


def mantissa(a: Lanes) -> Lanes:
    """Return the mantissa in [0.5, 1); infinities and NaN are returned unchanged."""
    return np.where(np.isfinite(a), np.frexp(a)[0], a)


def exponent(a: Lanes) -> Lanes:
    """Return the exponent that belongs to ``mantissa``; 0 for infinities and NaN."""
    return np.where(np.isfinite(a), np.frexp(a)[1], 0)


def scale(a: Lanes, power: Lanes) -> Lanes:
    """Return ``a * 2**power``, rounded once."""
    scaled: Lanes = np.ldexp(a, np.clip(power, -5000, 5000).astype(np.int32)).astype(a.dtype)
    return scaled


_TWO: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("add", np.add),
    ("sub", np.subtract),
    ("subrev", lambda a, b: b - a),
    ("mul", np.multiply),
    ("min", minimum_number),
    ("max", maximum_number),
    ("minimum", minimum),
    ("maximum", maximum),
)
_THREE: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("min3", lambda a, b, c: minimum_number(minimum_number(a, b), c)),
    ("max3", lambda a, b, c: maximum_number(maximum_number(a, b), c)),
    ("med3", median),
    ("minmax", lambda a, b, c: maximum_number(minimum_number(a, b), c)),
    ("maxmin", lambda a, b, c: minimum_number(maximum_number(a, b), c)),
    ("minimum3", lambda a, b, c: minimum(minimum(a, b), c)),
    ("maximum3", lambda a, b, c: maximum(maximum(a, b), c)),
    ("minimummaximum", lambda a, b, c: maximum(minimum(a, b), c)),
    ("maximumminimum", lambda a, b, c: minimum(maximum(a, b), c)),
)
_ONE: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("floor", np.floor),
    ("ceil", np.ceil),
    ("trunc", np.trunc),
    ("rndne", np.rint),
    ("fract", fraction),
    ("frexp_mant", mantissa),
)


def _multiply_add(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    result: Lanes = a * b + c
    return result


def _legacy_fma(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return np.where((a == 0) | (b == 0), c, fma32(a, b, c))


def _legacy_mad(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return legacy_product(a, b) + c


def _type_rows(kind: Type) -> Iterator[AluRow]:
    ternary = (
        *_THREE,
        ("mad", _multiply_add),
        ("mac", _multiply_add),
        ("fma", FMA[kind]),
        ("fmac", FMA[kind]),
    )
    for count, functions in ((1, _ONE), (2, _TWO), (3, ternary)):
        for name, compute in functions:
            yield AluRow(f"v_{name}_{kind}", (kind,), (kind,) * count, compute)
    power = Type.I16 if kind is Type.F16 else Type.I32
    yield AluRow(f"v_frexp_exp_{power}_{kind}", (power,), (kind,), exponent)
    yield AluRow(f"v_ldexp_{kind}", (kind,), (kind, power), scale)


_F16, _F32 = Type.F16, Type.F32


def _fma_f16(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return fma32(a, b, c).astype(np.float16)


def _mad_f16(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return _multiply_add(a, b, c).astype(np.float16)


_MIXED: tuple[tuple[str, Type, Callable[..., Lanes]], ...] = (
    ("v_fma_mix_f32", _F32, fma32),
    ("v_fma_mixlo_f16", _F16, _fma_f16),
    ("v_fma_mixhi_f16", _F16, _fma_f16),
    ("v_mad_mix_f32", _F32, _multiply_add),
    ("v_mad_mixlo_f16", _F16, _mad_f16),
    ("v_mad_mixhi_f16", _F16, _mad_f16),
)
_LEGACY: tuple[tuple[str, Type, Callable[..., Lanes]], ...] = (
    ("mad", _F32, _legacy_mad),
    ("mac", _F32, _legacy_mad),
    ("fma", _F32, _legacy_fma),
    ("fmac", _F32, _legacy_fma),
    ("mad", _F16, _multiply_add),
    ("mad", Type.U16, _multiply_add),
    ("mad", Type.I16, _multiply_add),
)
ROWS = (
    *(row for kind in FLOATS for row in _type_rows(kind)),
    AluRow("v_mul_legacy_f32", (_F32,), (_F32, _F32), legacy_product),
    *(
        AluRow(f"v_{name}_legacy_{kind}", (kind,), (kind,) * 3, compute)
        for name, kind, compute in _LEGACY
    ),
    *(
        AluRow(name, (result,), (_F32, _F32, _F32), compute, mixed=True)
        for name, result, compute in _MIXED
    ),
)
