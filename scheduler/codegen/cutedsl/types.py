"""Element types, and constants of these types, in CuteDSL."""

from __future__ import annotations

import math
from collections.abc import Mapping

from scheduler.codegen.printing.literals import round_and_print, wrap_integer
from scheduler.ir.dtypes import DType

_NAMES: Mapping[DType, str] = {
    DType.U8: "Uint8",
    DType.U16: "Uint16",
    DType.U32: "Uint32",
    DType.U64: "Uint64",
    DType.I8: "Int8",
    DType.I16: "Int16",
    DType.I32: "Int32",
    DType.I64: "Int64",
    DType.F16: "Float16",
    DType.BF16: "BFloat16",
    DType.F32: "Float32",
    DType.F64: "Float64",
    DType.BOOL: "Boolean",
}


def type_obstacle(dtype: DType) -> str:
    """Return why kernels here cannot have elements of that type, or "" if they can."""
    if dtype in _NAMES:
        return ""
    return f"CuteDSL kernels with elements of type {dtype.label} are not supported"


def type_name(dtype: DType) -> str:
    """Return the type of a value."""
    return f"cutlass.{_NAMES[dtype]}"


def element_name(dtype: DType) -> str:
    """Return the type of an element in memory: booleans are bytes there."""
    return type_name(DType.U8 if dtype is DType.BOOL else dtype)


def index_type_of(*, wide: bool) -> str:
    """Return the type of indices."""
    return type_name(DType.I64 if wide else DType.I32)


def literal(value: int | float | complex | bool, dtype: DType) -> str:
    """Return the constant ``value``, exact to the last bit, in the type that holds ``dtype`` inside
    kernels. Integers wrap as a conversion in C++ does."""
    if isinstance(value, complex):
        raise KeyError(f"CuteDSL constants of type {dtype.label} are not supported")
    compute = dtype.compute_dtype
    if compute is DType.BOOL:
        text = str(bool(value))
    elif compute.is_float:
        rounded, digits = round_and_print(float(value), compute)
        text = digits if math.isfinite(rounded) else f'float("{rounded}")'
    else:
        text = str(wrap_integer(int(value), compute))
    return f"{type_name(compute)}({text})"
