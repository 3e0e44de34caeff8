"""Rows of matrix multiplications, convolutions and attention."""

from __future__ import annotations

from scheduler.ir.ops import op
from scheduler.ir.reference import matmul as ref
from scheduler.ir.reference.constraints import weight_fan_in
from scheduler.lowering import attention, matmul

ROWS = (
    op("aten.mm", "self, mat2", matmul.mm, ref.mm, requires=weight_fan_in("mat2", -2, -1)),
    op("aten.bmm", "self, mat2", matmul.bmm, ref.mm, requires=weight_fan_in("mat2", -2, -1)),
    op(
        "aten.addmm",
        "self, mat1, mat2, *, beta=1, alpha=1",
        matmul.addmm,
        ref.addmm,
        requires=weight_fan_in("mat2", -2, -1),
    ),
    op(
        "aten.baddbmm",
        "self, batch1, batch2, *, beta=1, alpha=1",
        matmul.baddbmm,
        ref.baddbmm,
        requires=weight_fan_in("batch2", -2, -1),
    ),
    op(
        "aten.linear",
        "input, weight, bias=None",
        matmul.linear,
        ref.linear,
        requires=weight_fan_in("weight", -1),
    ),
    op(
        "aten.matmul",
        "self, other",
        matmul.matmul_op,
        ref.matmul,
        requires=weight_fan_in("other", -2, -1),
    ),
    op("aten.dot", "self, tensor", matmul.dot, ref.dot),
    op("aten.mv", "self, vec", matmul.mv, ref.mv),
    op("aten.addmv", "self, mat, vec, *, beta=1, alpha=1", matmul.addmv, ref.addmv),
    op("aten.outer", "self, vec2", matmul.outer, ref.outer),
    op(
        "aten.scaled_dot_product_attention",
        "query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, "
        "enable_gqa=False",
        attention.attention,
        ref.attention,
    ),
)
