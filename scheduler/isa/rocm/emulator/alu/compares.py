"""Comparisons of floats, and float classes.

A row gives the mask; the encoding decides whether it goes to VCC, to scalar registers or to EXEC.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from scheduler.isa.rocm.emulator.alu.row import AluRow, Lanes, Type

Masks = npt.NDArray[np.bool_]


def _never(a: Lanes, b: Lanes) -> Masks:
    return np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b)), dtype=np.bool_)


def _ordered(a: Lanes, b: Lanes) -> Masks:
    return ~(np.isnan(a) | np.isnan(b))


def _lesser_or_greater(a: Lanes, b: Lanes) -> Masks:
    differs: Masks = (a < b) | (a > b)
    return differs


def _not(compare: Callable[[Lanes, Lanes], Masks]) -> Callable[[Lanes, Lanes], Masks]:
    return lambda a, b: ~compare(a, b)


_FLOAT: dict[str, Callable[[Lanes, Lanes], Masks]] = {
    "f": _never,
    "lt": np.less,
    "eq": np.equal,
    "le": np.less_equal,
    "gt": np.greater,
    "lg": _lesser_or_greater,
    "ge": np.greater_equal,
    "o": _ordered,
    "u": _not(_ordered),
    "nge": _not(np.greater_equal),
    "nlg": _not(_lesser_or_greater),
    "ngt": _not(np.greater),
    "nle": _not(np.less_equal),
    "neq": _not(np.equal),
    "nlt": _not(np.less),
    "tru": _not(_never),
}
# The unsigned type, the digits of the mantissa, and the type of the mask of classes: f16's is half
# of a register on some targets; its ten bits are the low ones in both.
_FLOATS = {
    Type.F16: (np.uint16, 10, Type.U16),
    Type.F32: (np.uint32, 23, Type.U32),
    Type.F64: (np.uint64, 52, Type.U32),
}


def classes(values: Lanes, mask: Lanes, unsigned: Any, mantissa: int) -> Masks:
    """Whether a value is of one of the classes in ``mask``: bit 0 signalling NaN, 1 quiet NaN,
    2 -infinity, 3 -normal, 4 -denormal, 5 -0, 6 +0, 7 +denormal, 8 +normal, 9 +infinity."""
    bits = np.ascontiguousarray(values).view(unsigned)
    quiet = ((bits >> unsigned(mantissa - 1)) & unsigned(1)) == 1
    negative = np.signbit(values)
    magnitude = np.abs(values)
    normal = magnitude >= np.finfo(values.dtype).tiny
    class_bits = np.select(
        [np.isnan(values), np.isinf(values), values == 0, ~normal],
        [np.where(quiet, 1, 0), *(np.where(negative, *two) for two in ((2, 9), (5, 6), (4, 7)))],
        np.where(negative, 3, 8),
    )
    is_in_class: Masks = ((mask.astype(np.int64) >> class_bits) & 1) == 1
    return is_in_class


ROWS = [
    AluRow(f"v_cmp_{relation}_{kind}", (Type.MASK,), (kind, kind), compute)
    for kind in _FLOATS
    for relation, compute in _FLOAT.items()
]
ROWS += [
    AluRow(f"s_cmp_{relation}_{kind}", (Type.MASK,), (kind, kind), compute)
    for kind in (Type.F16, Type.F32)
    for relation, compute in _FLOAT.items()
    if relation not in ("f", "tru")
]
ROWS += [
    AluRow(
        f"v_cmp_class_{kind}",
        *((Type.MASK,), (kind, mask), partial(classes, unsigned=unsigned, mantissa=mantissa)),
    )
    for kind, (unsigned, mantissa, mask) in _FLOATS.items()
]
