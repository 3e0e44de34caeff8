"""Rows of ops that gather into bags and bins."""

from __future__ import annotations

from scheduler.ir.ops import NoKernel, op
from scheduler.ir.reference import bags as ref
from scheduler.ir.reference import hashes as ref_hashes
from scheduler.ir.reference.roles import rows_of
from scheduler.lowering import bags, histogram, segments
from scheduler.lowering.externs import SIZED

_BAG = (
    "weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, "
    "per_sample_weights=None, include_last_offset=False"
)
_BAG_PADDED = (
    "weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, "
    "include_last_offset, padding_idx"
)
_rows = rows_of("indices", "weight")

ROWS = (
    op(
        "aten.embedding_bag",
        f"{_BAG}; padding_idx: {_BAG_PADDED}",
        bags.composite_embedding_bag,
        ref.composite_embedding_bag,
        requires=_rows,
    ),
    op(
        "aten._embedding_bag",
        f"{_BAG}, padding_idx=-1",
        bags.embedding_bag,
        ref.embedding_bag,
        requires=_rows,
    ),
    op(
        "aten._embedding_bag_forward_only",
        f"{_BAG}, padding_idx=-1",
        bags.embedding_bag,
        ref.embedding_bag_forward,
        requires=_rows,
    ),
    op(
        "aten.segment_reduce",
        "data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, "
        "initial=None",
        segments.segment_reduce,
        ref.segment_reduce,
    ),
    op("aten.histc", "self, bins=100, min=0, max=0", histogram.histc, ref.histc),
    op(
        "aten.hash_tensor",
        "self, dim=(), *, keepdim=False, mode=0",
        NoKernel("no kernel adds bits up by exclusive or"),
        ref_hashes.hash_tensor,
    ),
    op(
        "aten.bincount",
        "self, weights=None, minlength=0",
        SIZED,
        ref.bincount,
    ),
)
