"""Round the operands of ops that make decisions to the types in which torch decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from scheduler.ir import operand_types
from scheduler.ir.dtypes import DType
from scheduler.ir.promotion import Operand
from scheduler.ir.values import Cast
from scheduler.lowering.tensor import Scalar, Tensor


def round_operands(
    op: str, arguments: Mapping[str, Any], result: DType | None
) -> Mapping[str, Any]:
    """The arguments of the named op, with numbers and tensors rounded to the types that the op
    sees.

    A value that kernels hold wider than its type is rounded unless it was just loaded: a fused
    ``floor(x * 0.3)`` of f16 takes the floor of the f16 product. Casting a load costs nothing.
    """
    if not operand_types.sees_rounded_operands(op):
        return arguments
    tensors = {
        name: (one, Operand(one.dtype, 2 if one.rank else 1))
        for name, one in arguments.items()
        if isinstance(one, Tensor) and not isinstance(one, Scalar)
    }
    return {**arguments, **operand_types.round_operands(op, arguments, tensors, result, _cast)}


def _cast(tensor: Tensor, dtype: DType) -> Tensor:
    """Round to a float type, even if kernels hold it in a wider one."""
    if not dtype.is_float or dtype is DType.F64:
        return tensor
    at = tensor.at
    return replace(tensor, at=lambda index: Cast(at(index), dtype, decides=True), buffer="")
