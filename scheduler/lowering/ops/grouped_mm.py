"""Rows of grouped matrix products, torch's and those of transformers."""

from __future__ import annotations

from scheduler.ir.ops import op
from scheduler.ir.reference import matmul as ref
from scheduler.ir.reference.constraints import weight_fan_in
from scheduler.lowering import grouped_mm as rules

ROWS = (
    op(
        "aten._grouped_mm",
        "self, mat2, offs=None, bias=None, out_dtype=None",
        rules.grouped_mm,
        ref.grouped_mm,
        requires=weight_fan_in("mat2", -2, -1),
    ),
    op(
        "transformers.grouped_mm_fallback",
        "default: input, weight, offs",
        rules.rows_by_group,
        ref.rows_by_group,
        requires=weight_fan_in("weight", -2, -1),
    ),
)
