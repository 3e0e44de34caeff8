"""V_TRIG_PREOP_F64: a segment of the digits of 2/pi, for the reduction of large angles."""

from __future__ import annotations

from functools import cache

import numpy as np

from scheduler.isa.rocm.emulator.alu.row import AluRow, Lanes, Type

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


ROWS = (AluRow("v_trig_preop_f64", (Type.F64,), (Type.F64, Type.U32), _trig_preop),)
