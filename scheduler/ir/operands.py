"""In which type an op takes its operands, where that decides what it gives.

Kernels hold f16 and bf16 in f32, and the reference holds everything in float64: sums and products
gain by it. A comparison does not: ``x == 0.1`` is true of the f16 nearest to 0.1, since torch
rounds the number to the tensor's type first, and ``floor(x * 0.3)`` is that of the rounded product.

Numbers: https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/TensorIterator.cpp, which
converts operands to their common type; arithmetic takes them exactly instead
(``opmath_t`` in BinaryOps).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from scheduler.ir.dtypes import DType
from scheduler.ir.promotion import Operand, result_type
from scheduler.ir.reference.rounding import rounded

_COMPARISONS = frozenset(
    {
        *("eq", "ne", "lt", "le", "gt", "ge", "greater", "greater_equal", "less", "less_equal"),
        *("not_equal", "isclose", "heaviside", "isin"),
    }
)
_STEPS = frozenset({"fmod", "remainder", "hardshrink", "hardshrink_backward"})
_SELECTIONS = frozenset(
    {
        *("where", "masked_fill", "clamp", "clamp_min", "clamp_max", "clip", "hardtanh"),
        *("hardtanh_backward", "relu6", "nan_to_num", "fill", "full_like", "index_fill"),
        *("fill_diagonal", "constant_pad_nd", "pad", "scatter", "masked_scatter", "copysign"),
        *("logit", "xlogy", "special_xlogy", "special_xlog1py"),
    }
)
_TESTS = frozenset(
    {
        *("isnan", "isinf", "isfinite", "isposinf", "isneginf", "sign", "sgn", "logical_not"),
        *("logical_and", "logical_or", "logical_xor", "any", "all", "count_nonzero", "nonzero"),
        *("nonzero_static", "argwhere", "searchsorted", "bucketize", "argmax", "argmin"),
    }
)
_ROUNDINGS = frozenset({"floor", "ceil", "round", "trunc", "frac", "fix", "floor_divide"})
_CONVERSIONS = frozenset({"to", "_to_copy", "type_as"})
_THRESHOLDS = frozenset({"threshold", "threshold_backward"})

#: Ops that take numbers as kernels hold them, in f32 beside f16.
_HELD = _THRESHOLDS | {"div", "floor_divide"}
#: Ops whose numbers are rounded to their tensors' type.
NUMBERS = _COMPARISONS | _STEPS | _SELECTIONS
#: Ops that see tensors as their own types hold them.
TENSORS = _COMPARISONS | _STEPS | _TESTS | _ROUNDINGS | _THRESHOLDS
#: Arguments that are numbers of another kind.
_COUNTS = frozenset({"dim", "decimals", "wrap", "pad", "size"})


def decides(name: str) -> bool:
    """Whether an op of this name (``aten.eq``) sees any of its operands rounded."""
    short = name.removeprefix("aten.")
    return short in NUMBERS or short in TENSORS or short in _CONVERSIONS or short == "div"


def is_brought(name: str, own: DType, common: DType) -> bool:
    """Whether an op of this name rounds a tensor of type ``own`` to the common one: floats of
    another type, and integers that are compared."""
    if own is common:
        return False
    return own.is_float or (own.is_integer and name.removeprefix("aten.") in _COMPARISONS)


def rounds_numbers(name: str) -> bool:
    """Whether the op of this name (``aten.eq``) rounds numbers to its tensors' type."""
    return name.removeprefix("aten.") in NUMBERS


def rounds_tensors(name: str, arguments: Mapping[str, Any], result: DType | None) -> bool:
    """Whether it sees tensors as their types hold them: a division where it rounds, a conversion
    where the result is no float."""
    short = name.removeprefix("aten.")
    if short == "div":
        return arguments.get("rounding_mode") is not None
    if short in _CONVERSIONS:
        return result is not None and not result.is_inexact
    return short in TENSORS


def common_type(name: str, operands: Mapping[str, Operand], result: DType | None) -> DType | None:
    """The float type to which an op of this name brings its operands before it decides, ``result``
    being what it makes; None where it does not, or brings them to another kind of type."""
    is_held = name.removeprefix("aten.") in _HELD
    if not operands or not (is_held or rounds_numbers(name)):
        return None
    is_comparison = result is None or result is DType.BOOL
    found = result_type(operands.values()) if is_comparison else result
    if found is None or not found.is_float:
        return None
    return found.compute if is_held else found


def operand(name: str, value: object) -> Operand | None:
    """A number among an op's arguments as an operand; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or name in _COUNTS:
        return None
    return Operand(DType.F32 if isinstance(value, float) else DType.I64, 0)


def number_as(value: float, dtype: DType) -> float:
    """The nearest number of a float type, past the end of its range infinite."""
    return float(rounded(np.asarray(value, np.float64), dtype))
