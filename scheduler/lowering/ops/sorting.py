"""Rows of sorting, order statistics and searches."""

from __future__ import annotations

from scheduler.ir.ops import op
from scheduler.ir.reference import sorting as ref
from scheduler.lowering import searchsorted
from scheduler.lowering import sorting as rules
from scheduler.lowering.errors import DATA_DEPENDENT_SIZE

QUANTILE = (
    "self, q, dim=None, keepdim=False, *, interpolation='linear'; "
    "scalar: self, q, dim=None, keepdim=False, *, interpolation='linear'"
)

ROWS = (
    op(
        "aten.sort",
        "self, dim=-1, descending=False; stable: self, *, stable, dim=-1, descending=False",
        rules.sort,
        ref.sort,
    ),
    op(
        "aten.argsort",
        "self, dim=-1, descending=False; stable: self, *, stable, dim=-1, descending=False",
        rules.argsort,
        ref.argsort,
    ),
    op("aten.msort", "self", rules.msort, ref.msort),
    op("aten.topk", "self, k, dim=-1, largest=True, sorted=True", rules.topk, ref.topk),
    op("aten.kthvalue", "self, k, dim=-1, keepdim=False", rules.kthvalue, ref.kthvalue),
    op(
        "aten.median",
        "self; dim: self, dim, keepdim=False",
        rules.median(ignores_nan=False),
        ref.median(ignores_nan=False),
    ),
    op(
        "aten.nanmedian",
        "self; dim: self, dim, keepdim=False",
        rules.median(ignores_nan=True),
        ref.median(ignores_nan=True),
    ),
    op(
        "aten.quantile",
        QUANTILE,
        rules.quantile(ignores_nan=False),
        ref.quantile(ignores_nan=False),
    ),
    op(
        "aten.nanquantile",
        QUANTILE,
        rules.quantile(ignores_nan=True),
        ref.quantile(ignores_nan=True),
    ),
    op("aten.mode", "self, dim=-1, keepdim=False", rules.mode, ref.mode),
    op(
        "aten._unique",
        "self, sorted=True, return_inverse=False",
        DATA_DEPENDENT_SIZE,
        ref.unique(consecutive=False),
    ),
    op(
        "aten.unique_dim_consecutive",
        "self, dim, return_inverse=False, return_counts=False",
        DATA_DEPENDENT_SIZE,
        ref.unique(consecutive=True),
    ),
    op(
        "aten._unique2",
        "self, sorted=True, return_inverse=False, return_counts=False",
        DATA_DEPENDENT_SIZE,
        ref.unique(consecutive=False),
    ),
    op(
        "aten.unique_dim",
        "self, dim, sorted=True, return_inverse=False, return_counts=False",
        DATA_DEPENDENT_SIZE,
        ref.unique(consecutive=False),
    ),
    op(
        "aten.unique_consecutive",
        "self, return_inverse=False, return_counts=False, dim=None",
        DATA_DEPENDENT_SIZE,
        ref.unique(consecutive=True),
    ),
    op(
        "aten.searchsorted",
        "Tensor Scalar: sorted_sequence, self, *, out_int32=False, right=False, side=None, "
        "sorter=None",
        searchsorted.searchsorted,
        ref.searchsorted,
    ),
    op(
        "aten.bucketize",
        "Tensor Scalar: self, boundaries, *, out_int32=False, right=False",
        searchsorted.bucketize,
        ref.bucketize,
    ),
    op(
        "aten.isin",
        "Tensor_Tensor: elements, test_elements, *, assume_unique=False, invert=False; "
        "Tensor_Scalar: elements, test_element, *, assume_unique=False, invert=False; "
        "Scalar_Tensor: element, test_elements, *, assume_unique=False, invert=False",
        searchsorted.isin,
        ref.isin,
    ),
)
