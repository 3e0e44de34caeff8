"""The operands of an op that decides, in the types in which torch has it decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler.ir import operands
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Argument
from scheduler.ir.promotion import Operand
from scheduler.ir.reference.rounding import rounded
from scheduler.ir.reference.rule import OWN_DTYPE


@dataclass(frozen=True)
class Types:
    """Of an op's tensors by the arguments' names, and of its first result, where it is known."""

    tensors: Mapping[str, DType]
    result: DType | None


def narrowed(
    op: str, bound: Mapping[str, Argument], args: Mapping[str, Any], types: Types
) -> dict[str, Any]:
    """Those of ``args`` that are rounded before an op of this name sees them."""
    if not operands.decides(op):
        return {}
    known = ((name, operands.operand(name, one)) for name, one in bound.items())
    numbers = {name: one for name, one in known if one is not None}
    tensors = {n: Operand(own, 2 if np.ndim(args[n]) else 1) for n, own in types.tensors.items()}
    # Integers are divided in the result's type.
    made: dict[str, Any] = {OWN_DTYPE: types.result} if op == "aten.div" else {}
    if operands.rounds_tensors(op, args, types.result):
        made |= {n: rounded(args[n], own) for n, own in types.tensors.items() if own.is_inexact}
    common = operands.common_type(op, {**tensors, **numbers} if tensors else {}, types.result)
    if common is not None:
        made |= {name: operands.number_as(args[name], common) for name in numbers}
        for name, own in types.tensors.items():
            if operands.is_brought(op, own, common):
                made[name] = rounded(made.get(name, args[name]), common)
    return made
