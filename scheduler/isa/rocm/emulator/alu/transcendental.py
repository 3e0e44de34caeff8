"""Reciprocals, roots, powers and logarithms of two, sine and cosine.

The hardware is accurate to 1 ulp (f16 0.51, f64's reciprocals about 2**29 ulp, sine and cosine
about 2**-16). Here results are correctly rounded or as accurate as NumPy's float64, so they differ
from the hardware's by at most that. f32 functions flush denormals, as the ISA documents say and as
the compiler's own expansions expect; f16 and f64 functions keep them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from scheduler.isa.rocm.emulator.alu.row import AluRow, Lanes, Type, computes

_NORMAL = np.float32(2.0**-126)
# Sine and cosine take up to this many revolutions.
_REVOLUTIONS = 256.0


def _of_revolutions(function: Callable[[Lanes], Lanes], beyond: float) -> Callable[[Lanes], Lanes]:
    """Return sine or cosine of revolutions, with its value beyond the range."""

    def compute(a: Lanes) -> Lanes:
        result = function(2 * np.pi * (a - np.rint(a)))
        return np.where(np.isfinite(a) & (np.abs(a) > _REVOLUTIONS), beyond, result)

    return compute


# Name, function, and whether f64 and the scalar unit have it.
_FUNCTIONS: tuple[tuple[str, Callable[[Lanes], Lanes], bool, bool], ...] = (
    ("rcp", lambda a: 1.0 / a, True, True),
    ("rsq", lambda a: 1.0 / np.sqrt(a), True, True),
    ("sqrt", np.sqrt, True, True),
    ("exp", np.exp2, False, True),
    ("log", np.log2, False, True),
    ("sin", _of_revolutions(np.sin, 0.0), False, False),
    ("cos", _of_revolutions(np.cos, 1.0), False, False),
)


def _flushed(values: Lanes) -> Lanes:
    """Replace denormals by zeros of the same sign."""
    return np.where(np.abs(values) < _NORMAL, np.copysign(np.float32(0), values), values)


def f32_variant(function: Callable[[Lanes], Lanes]) -> Callable[[Lanes], Lanes]:
    """Return the f32 function, without denormals."""

    def compute(a: Lanes) -> Lanes:
        return _flushed(function(_flushed(a).astype(np.float64)).astype(np.float32))

    return compute


def f16_variant(function: Callable[[Lanes], Lanes]) -> Callable[[Lanes], Lanes]:
    """Return the f16 function, computed in float64."""

    def compute(a: Lanes) -> Lanes:
        result: Lanes = function(a.astype(np.float64)).astype(np.float16)
        return result

    return compute


ROWS: list[AluRow] = []
for _name, _function, _has_f64, _is_scalar in _FUNCTIONS:
    _f16, _f32 = f16_variant(_function), f32_variant(_function)
    ROWS += [AluRow(f"v_{_name}_f16", (Type.F16,), (Type.F16,), _f16)]
    _names = [f"v_{_name}_f32", f"v_{_name}_legacy_f32"]
    if _has_f64:
        ROWS += [AluRow(f"v_{_name}_f64", (Type.F64,), (Type.F64,), _function)]
    if _is_scalar:
        ROWS += [AluRow(f"v_s_{_name}_f16", (Type.F16,), (Type.F16,), _f16)]
        _names.append(f"v_s_{_name}_f32")
    if _name == "rcp":
        _names.append("v_rcp_iflag_f32")
    ROWS += [AluRow(name, (Type.F32,), (Type.F32,), _f32) for name in _names]


# V_TRIG_PREOP_F64: a segment of the digits of 2/pi, for the reduction of large angles.

_DIGITS = 1201
_STRETCH = 53


@cache
def _two_over_pi() -> int:
    """Return the first 1201 binary digits of 2/pi."""
    guard = 64
    one = 1 << (_DIGITS + guard)
    pi = 4 * (4 * _arc_tangent(5, one) - _arc_tangent(239, one))
    return (2 * one * one // pi) >> guard


def _arc_tangent(inverse: int, one: int) -> int:
    """Return the arc tangent of 1 / ``inverse``, by its series."""
    total = term = one // inverse
    number, sign = 3, -1
    while term:
        term //= inverse * inverse
        total += sign * (term // number)
        number, sign = number + 2, -sign
    return total


@computes(ROWS, "v_trig_preop_f64", (Type.F64,), (Type.F64, Type.U32))
def _trig_preop(values: Lanes, segments: Lanes) -> Lanes:
    values, segments = np.broadcast_arrays(values, segments)
    exponents = (np.ascontiguousarray(values).view(np.uint64) >> np.uint64(52)) & np.uint64(0x7FF)
    result = np.empty(values.shape, np.float64)
    for index, exponent in np.ndenumerate(exponents.astype(np.int64)):
        shift = int(segments[index] & 31) * _STRETCH + max(0, int(exponent) - 1077)
        whole = (_two_over_pi() << shift >> (_DIGITS - _STRETCH)) & ((1 << _STRETCH) - 1)
        scale = -_STRETCH - shift + (128 if exponent >= 1968 else 0)
        result[index] = np.ldexp(float(whole), scale)
    return result
