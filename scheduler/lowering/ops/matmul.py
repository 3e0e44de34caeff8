"""Rows of matrix multiplications, convolutions and attention."""

from __future__ import annotations

from functools import partial

from scheduler.ir.ops import op
from scheduler.ir.reference import attention as ref_attention
from scheduler.ir.reference import matmul as ref
from scheduler.ir.reference.constraints import weight_fan_in
from scheduler.lowering import attention
from scheduler.lowering import matmul as rules

_product_op = partial(op, requires=weight_fan_in("mat2", -2, -1))

ROWS = (
    _product_op("aten.mm", "self, mat2", rules.mm, ref.mm),
    _product_op("aten.bmm", "self, mat2", rules.bmm, ref.mm),
    _product_op("aten.addmm", "self, mat1, mat2, *, beta=1, alpha=1", rules.addmm, ref.addmm),
    op(
        "aten.baddbmm",
        "self, batch1, batch2, *, beta=1, alpha=1",
        rules.baddbmm,
        ref.baddbmm,
        requires=weight_fan_in("batch2", -2, -1),
    ),
    op(
        "aten.linear",
        "input, weight, bias=None",
        rules.linear,
        ref.linear,
        requires=weight_fan_in("weight", -1),
    ),
    op(
        "aten.matmul",
        "self, other",
        rules.matmul_op,
        ref.matmul,
        requires=weight_fan_in("other", -2, -1),
    ),
    op("aten.dot", "self, tensor", rules.dot, ref.dot),
    op("aten.mv", "self, vec", rules.mv, ref.mv),
    op("aten.addmv", "self, mat, vec, *, beta=1, alpha=1", rules.addmv, ref.addmv),
    op("aten.outer", "self, vec2", rules.outer, ref.outer),
    op(
        "aten.scaled_dot_product_attention",
        "query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, "
        "enable_gqa=False",
        attention.attention,
        ref_attention.attention,
    ),
)
