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
    ("mad", lambda a, b, c: a * b + c),
)
_ONE: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("floor", np.floor),
    ("ceil", np.ceil),
    ("trunc", np.trunc),
    ("rndne", np.rint),
    ("fract", fraction),
    ("frexp_mant", mantissa),
)


def _type_rows(kind: Type) -> Iterator[AluRow]:
    fma = FMA[kind]
    for name, compute in _ONE:
        yield AluRow(f"v_{name}_{kind}", (kind,), (kind,), compute)
    for name, compute in _TWO:
        yield AluRow(f"v_{name}_{kind}", (kind,), (kind, kind), compute)
    for name, compute in (*_THREE, ("fma", fma)):
        yield AluRow(f"v_{name}_{kind}", (kind,), (kind, kind, kind), compute)
    yield AluRow(f"v_fmac_{kind}", (kind,), (kind, kind, kind), fma)
    yield AluRow(f"v_mac_{kind}", (kind,), (kind, kind, kind), lambda a, b, c: a * b + c)
    power = Type.I16 if kind is Type.F16 else Type.I32
    yield AluRow(f"v_frexp_exp_{power}_{kind}", (power,), (kind,), exponent)
    yield AluRow(f"v_ldexp_{kind}", (kind,), (kind, power), scale)


_F32 = Type.F32
_LEGACY = (
    AluRow("v_mul_legacy_f32", (_F32,), (_F32, _F32), legacy_product),
    AluRow(
        "v_mad_legacy_f32",
        (_F32,),
        (_F32, _F32, _F32),
        lambda a, b, c: legacy_product(a, b) + c,
    ),
    AluRow(
        "v_mac_legacy_f32",
        (_F32,),
        (_F32, _F32, _F32),
        lambda a, b, c: legacy_product(a, b) + c,
    ),
    *(
        AluRow(
            name,
            (_F32,),
            (_F32, _F32, _F32),
            lambda a, b, c: np.where((a == 0) | (b == 0), c, fma32(a, b, c)),
        )
        for name in ("v_fma_legacy_f32", "v_fmac_legacy_f32")
    ),
)


def _mixed(name: str, result: Type, compute: Callable[..., Lanes]) -> AluRow:
    return AluRow(name, (result,), (_F32, _F32, _F32), compute, mixed=True)


def _fma_f16(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return fma32(a, b, c).astype(np.float16)


def _mad_f16(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return (a * b + c).astype(np.float16)


_MIXED = (
    _mixed("v_fma_mix_f32", _F32, fma32),
    _mixed("v_fma_mixlo_f16", Type.F16, _fma_f16),
    _mixed("v_fma_mixhi_f16", Type.F16, _fma_f16),
    _mixed("v_mad_mix_f32", _F32, lambda a, b, c: a * b + c),
    _mixed("v_mad_mixlo_f16", Type.F16, _mad_f16),
    _mixed("v_mad_mixhi_f16", Type.F16, _mad_f16),
)

_F16 = Type.F16
_LEGACY_HALF = (
    AluRow("v_mad_legacy_f16", (_F16,), (_F16, _F16, _F16), lambda a, b, c: a * b + c),
    *(
        AluRow(f"v_mad_legacy_{kind}", (kind,), (kind, kind, kind), lambda a, b, c: a * b + c)
        for kind in (Type.U16, Type.I16)
    ),
)

ROWS = (*(row for kind in FLOATS for row in _type_rows(kind)), *_LEGACY, *_MIXED, *_LEGACY_HALF)
