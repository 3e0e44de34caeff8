"""Rows of ops that gather into bags and bins."""

from __future__ import annotations

from scheduler.ir.ops import NoKernel, op
from scheduler.ir.reference import embedding_bag as ref
from scheduler.ir.reference import statistics as ref_statistics
from scheduler.ir.reference.constraints import row_indices
from scheduler.lowering import embedding_bag as rules
from scheduler.lowering import segment_reduce, statistics
from scheduler.lowering.errors import DATA_DEPENDENT_SIZE

_BAG = (
    "weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, "
    "per_sample_weights=None, include_last_offset=False"
)
_BAG_PADDED = (
    "weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, "
    "include_last_offset, padding_idx"
)
_rows = row_indices("indices", "weight")

ROWS = (
    op(
        "aten.embedding_bag",
        f"{_BAG}; padding_idx: {_BAG_PADDED}",
        rules.composite_embedding_bag,
        ref.composite_embedding_bag,
        requires=_rows,
    ),
    op(
        "aten._embedding_bag",
        f"{_BAG}, padding_idx=-1",
        rules.embedding_bag,
        ref.embedding_bag,
        requires=_rows,
    ),
    op(
        "aten._embedding_bag_forward_only",
        f"{_BAG}, padding_idx=-1",
        rules.embedding_bag,
        ref.embedding_bag_forward,
        requires=_rows,
    ),
    op(
        "aten.segment_reduce",
        "data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, "
        "initial=None",
        segment_reduce.segment_reduce,
        ref.segment_reduce,
    ),
    op("aten.histc", "self, bins=100, min=0, max=0", statistics.histc, ref_statistics.histc),
    op(
        "aten.hash_tensor",
        "self, dim=(), *, keepdim=False, mode=0",
        NoKernel("no kernels are generated for xor reductions"),
        ref_statistics.hash_tensor,
    ),
    op(
        "aten.bincount",
        "self, weights=None, minlength=0",
        DATA_DEPENDENT_SIZE,
        ref_statistics.bincount,
    ),
)
