"""Rows of sums of products over named dimensions, and of sums of numbers."""

from __future__ import annotations

from scheduler.ir.ops import op
from scheduler.ir.reference import matmul as ref
from scheduler.ir.reference import reductions as ref_reductions
from scheduler.ir.reference.constraints import weight_fan_in
from scheduler.lowering import einsum as rules
from scheduler.lowering import statistics

NUMBERS = "self, dim=None, keepdim=False, *, dtype=None"

ROWS = (
    op("aten.einsum", "equation, tensors, *, path=None", rules.einsum, ref.einsum),
    op("aten.tensordot", "self, other, dims_self, dims_other", rules.tensordot, ref.tensordot),
    op("aten.inner", "self, other", rules.inner, ref.inner),
    op("aten.kron", "self, other", rules.kron, ref.kron),
    op(
        "aten.addbmm",
        "self, batch1, batch2, *, beta=1, alpha=1",
        rules.addbmm,
        ref.addbmm,
        requires=weight_fan_in("batch2", -2, -1),
    ),
    op("aten.addr", "self, vec1, vec2, *, beta=1, alpha=1", rules.addr, ref.addr),
    op("aten.chain_matmul", "matrices", rules.chain_matmul, ref.chain_matmul),
    op(
        "aten.bilinear",
        "input1, input2, weight, bias=None",
        rules.bilinear,
        ref.bilinear,
        requires=weight_fan_in("weight", 1),
    ),
    op(
        "aten._trilinear",
        "i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim=1",
        rules.trilinear,
        ref.trilinear,
    ),
    op("aten.nansum", NUMBERS, statistics.nansum, ref_reductions.nansum),
    op("aten.nanmean", NUMBERS, statistics.nanmean, ref_reductions.nanmean),
)
