"""The type in which an op takes its operands, if the result depends on it.

Kernels compute f16 and bf16 in f32, and the reference computes floats in float64, which makes sums
and products more accurate. Comparisons need torch's types: ``x == 0.1`` is true for the f16 nearest
to 0.1, since torch rounds the number to the tensor's type first, and ``floor(x * 0.3)`` is that of
the rounded product.

Numbers: https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/TensorIterator.cpp, which
converts operands to their common type; arithmetic uses exact numbers instead
(``opmath_t`` in BinaryOps).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from scheduler.ir.dtypes import DType
from scheduler.ir.encoding import round_to_dtype
from scheduler.ir.promotion import Operand, result_type

_COMPARISONS = frozenset(
    {
        *("eq", "ne", "lt", "le", "gt", "ge", "greater", "greater_equal", "less", "less_equal"),
        *("not_equal", "isclose", "heaviside", "isin"),
    }
)
_STEP_FUNCTIONS = frozenset({"fmod", "remainder", "hardshrink", "hardshrink_backward"})
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

#: Ops that take numbers in the compute dtype: in f32 with f16.
_UPCAST_NUMBERS = _THRESHOLDS | {"div", "floor_divide"}
#: Ops whose numbers are rounded to their tensors' type.
_ROUNDED_NUMBERS = _COMPARISONS | _STEP_FUNCTIONS | _SELECTIONS
#: Ops that see tensors rounded to their own types.
_ROUNDED_TENSORS = _COMPARISONS | _STEP_FUNCTIONS | _TESTS | _ROUNDINGS | _THRESHOLDS
_ROUNDING_OPS = _ROUNDED_NUMBERS | _ROUNDED_TENSORS | _UPCAST_NUMBERS | _CONVERSIONS
#: Arguments that are numbers of another kind.
_EXEMPT_ARGUMENTS = frozenset({"dim", "decimals", "wrap", "pad", "size"})

T = TypeVar("T")


def sees_rounded_operands(op: str) -> bool:
    """Whether an op of this name (``aten.eq``) may see operands rounded."""
    return _short(op) in _ROUNDING_OPS


def round_operands(
    op: str,
    arguments: Mapping[str, Any],
    tensors: Mapping[str, tuple[T, Operand]],
    result: DType | None,
    cast: Callable[[T, DType], T],
) -> dict[str, T | float]:
    """Return the arguments that are rounded before an op uses them, by name.

    ``tensors`` are the tensors among ``arguments`` with their types, ``cast`` rounds one to a type;
    ``result`` is the type of the op's result, if known.
    """
    short_name = _short(op)
    rounded: dict[str, T | float] = {}
    seen = {name: value for name, (value, _) in tensors.items()}
    if _sees_own_types(short_name, arguments, result):
        seen = {name: cast(value, operand.dtype) for name, (value, operand) in tensors.items()}
        rounded |= seen
    numbers = {
        name: number for name, value in arguments.items() if (number := _number(name, value))
    }
    operands = [operand for _, operand in tensors.values()]
    common = _common_type(short_name, [*operands, *numbers.values()], result) if tensors else None
    if common is None:
        return rounded
    rounded |= {
        name: float(round_to_dtype(np.asarray(arguments[name], np.float64), common))
        for name in numbers
    }
    rounded |= {
        name: cast(seen[name], common)
        for name, (_, operand) in tensors.items()
        if _is_converted(short_name, operand.dtype, common)
    }
    return rounded


def _short(op: str) -> str:
    return op.removeprefix("aten.")


def _sees_own_types(name: str, arguments: Mapping[str, Any], result: DType | None) -> bool:
    """Whether an op sees tensors rounded to their own types: a division only with a rounding mode,
    a conversion only if the result is not a float."""
    if name == "div":
        return arguments.get("rounding_mode") is not None
    if name in _CONVERSIONS:
        return result is not None and not result.is_inexact
    return name in _ROUNDED_TENSORS


def _common_type(name: str, operands: Sequence[Operand], result: DType | None) -> DType | None:
    """Return the float type to which the op converts its operands, or None if it does not convert
    them to a float type."""
    if name not in _ROUNDED_NUMBERS and name not in _UPCAST_NUMBERS:
        return None
    is_comparison = result is None or result is DType.BOOL
    dtype = result_type(operands) if is_comparison else result
    if dtype is None or not dtype.is_float:
        return None
    return dtype.compute_dtype if name in _UPCAST_NUMBERS else dtype


def _is_converted(name: str, dtype: DType, common: DType) -> bool:
    """Whether a tensor is converted: other floats and compared integers; not indices or masks."""
    if dtype is common:
        return False
    return dtype.is_float or (dtype.is_integer and name in _COMPARISONS)


def _number(name: str, value: object) -> Operand | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or name in _EXEMPT_ARGUMENTS:
        return None
    return Operand(DType.F32 if isinstance(value, float) else DType.I64, 0)
