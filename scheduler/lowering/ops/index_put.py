"""Rows of ops that write at indices."""

from __future__ import annotations

from functools import partial

from scheduler.ir.ops import op
from scheduler.ir.reference import index_put as ref
from scheduler.ir.reference.constraints import (
    dim_indices,
    flat_indices,
    indices_below,
    per_dim_indices,
    row_indices,
)
from scheduler.lowering import index_put as rules

_PUT = "self, indices, values, accumulate=False"
_REDUCED = "self, dim, index, src, reduce, *, include_self=True"
_along_dim = dim_indices("index")
_indexed_op = partial(op, requires=_along_dim)

ROWS = (
    op("aten.index_put", _PUT, rules.index_put, ref.index_put, requires=per_dim_indices),
    op("aten._unsafe_index_put", _PUT, rules.index_put, ref.index_put, requires=per_dim_indices),
    op(
        "aten._index_put_impl",
        f"{_PUT}, unsafe=False",
        rules.index_put,
        ref.index_put,
        requires=per_dim_indices,
    ),
    _indexed_op(
        "aten.scatter",
        "src: self, dim, index, src; value: self, dim, index, value; "
        "reduce: self, dim, index, src, *, reduce; "
        "value_reduce: self, dim, index, value, *, reduce",
        rules.scatter,
        ref.scatter,
    ),
    _indexed_op("aten.scatter_add", "self, dim, index, src", rules.scatter_add, ref.scatter_add),
    _indexed_op(
        "aten.scatter_reduce", f"two: {_REDUCED}", rules.scatter_reduce, ref.scatter_reduce
    ),
    _indexed_op(
        "aten.index_add", "self, dim, index, source, *, alpha=1", rules.index_add, ref.index_add
    ),
    _indexed_op("aten.index_copy", "self, dim, index, source", rules.index_copy, ref.index_copy),
    _indexed_op(
        "aten.index_fill",
        "int_Scalar int_Tensor: self, dim, index, value",
        rules.index_fill,
        ref.index_fill,
    ),
    _indexed_op(
        "aten.index_reduce",
        "self, dim, index, source, reduce, *, include_self=True",
        rules.index_reduce,
        ref.index_reduce,
    ),
    op(
        "aten._unsafe_masked_index_put_accumulate",
        "self, mask, indices, values",
        rules.masked_put,
        ref.masked_put,
        requires=per_dim_indices,
    ),
    op(
        "aten.embedding_renorm",
        "self, indices, max_norm, norm_type",
        rules.embedding_renorm,
        ref.embedding_renorm,
        requires=row_indices("indices", "self"),
    ),
    op("aten.masked_scatter", "self, mask, source", rules.masked_scatter, ref.masked_scatter),
    op(
        "aten.put",
        "self, index, source, accumulate=False",
        rules.put,
        ref.put,
        requires=flat_indices("index"),
    ),
    op(
        "aten.embedding_dense_backward",
        "grad_output, indices, num_weights, padding_idx, scale_grad_by_freq",
        rules.embedding_dense_backward,
        ref.embedding_dense_backward,
        requires=indices_below("indices", "num_weights"),
    ),
)
