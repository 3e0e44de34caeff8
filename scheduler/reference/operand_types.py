"""Rounds operands of comparisons and similar ops to the types that torch evaluates them in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from scheduler.ir import operand_types
from scheduler.ir.dtypes import DType
from scheduler.ir.encoding import round_to_dtype
from scheduler.ir.graph import Argument, Ref
from scheduler.ir.promotion import Operand
from scheduler.ir.reference.rule import OWN_DTYPE


def round_operands(
    op: str,
    bound: Mapping[str, Argument],
    args: Mapping[str, Any],
    type_of: Callable[[str], DType | None],
    result: str,
) -> dict[str, Any]:
    """Return the values of ``args`` that are rounded before an op of this name uses them, by name.

    ``args`` are the values of ``bound``. ``type_of`` returns the type of a tensor by name;
    ``result`` is the name of the op's first result.
    """
    if not operand_types.sees_rounded_operands(op):
        return {}
    tensors = {
        name: (args[name], Operand(dtype, 2 if np.ndim(args[name]) else 1))
        for name, argument in bound.items()
        if isinstance(argument, Ref) and (dtype := type_of(argument.name)) is not None
    }
    rounded: dict[str, Any] = operand_types.round_operands(
        op, bound, tensors, type_of(result), round_to_dtype
    )
    if op == "aten.div":  # integers are divided in the result's type
        rounded[OWN_DTYPE] = type_of(result)
    return rounded
