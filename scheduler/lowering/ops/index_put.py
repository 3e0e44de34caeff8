"""Rows of ops that write at indices."""

from __future__ import annotations

from scheduler.ir.ops import op
from scheduler.ir.reference import index_put as ref
from scheduler.ir.reference.constraints import (
    dim_indices,
    flat_indices,
    indices_below,
    per_dim_indices,
    row_indices,
)
from scheduler.lowering import index_put

_PUT = "self, indices, values, accumulate=False"
_REDUCED = "self, dim, index, src, reduce, *, include_self=True"
_along_dim = dim_indices("index")

ROWS = (
    op("aten.index_put", _PUT, index_put.index_put, ref.index_put, requires=per_dim_indices),
    op(
        "aten._unsafe_index_put", _PUT, index_put.index_put, ref.index_put, requires=per_dim_indices
    ),
    op(
        "aten._index_put_impl",
        f"{_PUT}, unsafe=False",
        index_put.index_put,
        ref.index_put,
        requires=per_dim_indices,
    ),
    op(
        "aten.scatter",
        "src: self, dim, index, src; value: self, dim, index, value; "
        "reduce: self, dim, index, src, *, reduce; "
        "value_reduce: self, dim, index, value, *, reduce",
        index_put.scatter,
        ref.scatter,
        requires=_along_dim,
    ),
    op(
        "aten.scatter_add",
        "self, dim, index, src",
        index_put.scatter_add,
        ref.scatter_add,
        requires=_along_dim,
    ),
    op(
        "aten.scatter_reduce",
        f"two: {_REDUCED}",
        index_put.scatter_reduce,
        ref.scatter_reduce,
        requires=_along_dim,
    ),
    op(
        "aten.index_add",
        "self, dim, index, source, *, alpha=1",
        index_put.index_add,
        ref.index_add,
        requires=_along_dim,
    ),
    op(
        "aten.index_copy",
        "self, dim, index, source",
        index_put.index_copy,
        ref.index_copy,
        requires=_along_dim,
    ),
    op(
        "aten.index_fill",
        "int_Scalar int_Tensor: self, dim, index, value",
        index_put.index_fill,
        ref.index_fill,
        requires=_along_dim,
    ),
    op(
        "aten.index_reduce",
        "self, dim, index, source, reduce, *, include_self=True",
        index_put.index_reduce,
        ref.index_reduce,
        requires=_along_dim,
    ),
    op(
        "aten._unsafe_masked_index_put_accumulate",
        "self, mask, indices, values",
        index_put.masked_put,
        ref.masked_put,
        requires=per_dim_indices,
    ),
    op(
        "aten.embedding_renorm",
        "self, indices, max_norm, norm_type",
        index_put.embedding_renorm,
        ref.embedding_renorm,
        requires=row_indices("indices", "self"),
    ),
    op("aten.masked_scatter", "self, mask, source", index_put.masked_scatter, ref.masked_scatter),
    op(
        "aten.put",
        "self, index, source, accumulate=False",
        index_put.put,
        ref.put,
        requires=flat_indices("index"),
    ),
    op(
        "aten.embedding_dense_backward",
        "grad_output, indices, num_weights, padding_idx, scale_grad_by_freq",
        index_put.embedding_dense_backward,
        ref.embedding_dense_backward,
        requires=indices_below("indices", "num_weights"),
    ),
)
