"""Rows of sorting, order statistics and searches."""

from __future__ import annotations

from scheduler.ir.ops import NoKernel, op
from scheduler.ir.reference import sorting as ref
from scheduler.lowering import sorting

SIZED = NoKernel("how many elements are distinct depends on the data")
QUANTILE = (
    "self, q, dim=None, keepdim=False, *, interpolation='linear'; "
    "scalar: self, q, dim=None, keepdim=False, *, interpolation='linear'"
)

ROWS = (
    op(
        "aten.sort",
        "self, dim=-1, descending=False; stable: self, *, stable, dim=-1, descending=False",
        sorting.sort,
        ref.sort,
    ),
    op(
        "aten.argsort",
        "self, dim=-1, descending=False; stable: self, *, stable, dim=-1, descending=False",
        sorting.argsort,
        ref.argsort,
    ),
    op("aten.msort", "self", sorting.msort, ref.msort),
    op("aten.topk", "self, k, dim=-1, largest=True, sorted=True", sorting.topk, ref.topk),
    op("aten.kthvalue", "self, k, dim=-1, keepdim=False", sorting.kthvalue, ref.kthvalue),
    op(
        "aten.median",
        "self; dim: self, dim, keepdim=False",
        sorting.median(ignores_nan=False),
        ref.median(ignores_nan=False),
    ),
    op(
        "aten.nanmedian",
        "self; dim: self, dim, keepdim=False",
        sorting.median(ignores_nan=True),
        ref.median(ignores_nan=True),
    ),
    op(
        "aten.quantile",
        QUANTILE,
        sorting.quantile(ignores_nan=False),
        ref.quantile(ignores_nan=False),
    ),
    op(
        "aten.nanquantile",
        QUANTILE,
        sorting.quantile(ignores_nan=True),
        ref.quantile(ignores_nan=True),
    ),
    op(
        "aten._unique2",
        "self, sorted=True, return_inverse=False, return_counts=False",
        SIZED,
        ref.unique(consecutive=False),
    ),
    op(
        "aten.unique_dim",
        "self, dim, sorted=True, return_inverse=False, return_counts=False",
        SIZED,
        ref.unique(consecutive=False),
    ),
    op(
        "aten.unique_consecutive",
        "self, return_inverse=False, return_counts=False, dim=None",
        SIZED,
        ref.unique(consecutive=True),
    ),
)
