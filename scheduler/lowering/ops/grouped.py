"""Rows of products of groups of rows, torch's and those of transformers."""

from __future__ import annotations

from scheduler.ir.ops import op
from scheduler.ir.reference import grouped as ref
from scheduler.ir.reference.roles import summed
from scheduler.lowering import grouped

ROWS = (
    op(
        "aten._grouped_mm",
        "self, mat2, offs=None, bias=None, out_dtype=None",
        grouped.grouped_mm,
        ref.grouped_mm,
        requires=summed("mat2", -2, -1),
    ),
    op(
        "transformers.grouped_mm_fallback",
        "default: input, weight, offs",
        grouped.rows_by_group,
        ref.rows_by_group,
        requires=summed("weight", -2, -1),
    ),
)
