"""Rows of products of quantized tensors."""

from __future__ import annotations

from scheduler.ir.ops import op
from scheduler.ir.reference import quantized as ref
from scheduler.ir.reference.roles import summed
from scheduler.lowering import quantized

ROWS = (
    op(
        "aten._scaled_mm",
        "self, mat2, scale_a, scale_b, bias=None, scale_result=None, out_dtype=None, "
        "use_fast_accum=False",
        quantized.scaled_mm,
        ref.scaled_mm,
        requires=summed("mat2", -2, -1),
    ),
)
