"""Comparisons of integers by the vector unit."""

from __future__ import annotations

from typing import Any

import numpy as np

from scheduler.isa.rocm.emulator.alu.row import AluRow, Type

_FUNCTIONS: dict[str, Any] = {
    "lt": np.less,
    "eq": np.equal,
    "le": np.less_equal,
    "gt": np.greater,
    "ne": np.not_equal,
    "ge": np.greater_equal,
    "f": lambda a, b: np.zeros(np.broadcast_shapes(a.shape, b.shape), bool),
    "t": lambda a, b: np.ones(np.broadcast_shapes(a.shape, b.shape), bool),
}
_KINDS = {"i16": Type.I16, "u16": Type.U16, "i32": Type.I32, "u32": Type.U32}
_KINDS |= {"i64": Type.I64, "u64": Type.U64}

ROWS: tuple[AluRow, ...] = tuple(
    AluRow(f"v_cmp_{name}_{word}", (Type.MASK,), (kind, kind), function)
    for name, function in _FUNCTIONS.items()
    for word, kind in _KINDS.items()
)
