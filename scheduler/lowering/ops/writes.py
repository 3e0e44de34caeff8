"""Rows of ops that write at indices."""

from __future__ import annotations

from scheduler.ir.ops import op
from scheduler.ir.reference import writes as ref
from scheduler.ir.reference.roles import (
    places_along_dim,
    places_by_dimension,
    places_of_all,
    rows_below,
    rows_of,
)
from scheduler.lowering import writes

_PUT = "self, indices, values, accumulate=False"
_REDUCED = "self, dim, index, src, reduce, *, include_self=True"
_along_dim = places_along_dim("index")

ROWS = (
    op("aten.index_put", _PUT, writes.index_put, ref.index_put, requires=places_by_dimension),
    op(
        "aten._unsafe_index_put",
        _PUT,
        writes.index_put,
        ref.index_put,
        requires=places_by_dimension,
    ),
    op(
        "aten._index_put_impl",
        f"{_PUT}, unsafe=False",
        writes.index_put,
        ref.index_put,
        requires=places_by_dimension,
    ),
    op(
        "aten.scatter",
        "src: self, dim, index, src; value: self, dim, index, value; "
        "reduce: self, dim, index, src, *, reduce; "
        "value_reduce: self, dim, index, value, *, reduce",
        writes.scatter,
        ref.scatter,
        requires=_along_dim,
    ),
    op(
        "aten.scatter_add",
        "self, dim, index, src",
        writes.scatter_add,
        ref.scatter_add,
        requires=_along_dim,
    ),
    op(
        "aten.scatter_reduce",
        f"two: {_REDUCED}",
        writes.scatter_reduce,
        ref.scatter_reduce,
        requires=_along_dim,
    ),
    op(
        "aten.index_add",
        "self, dim, index, source, *, alpha=1",
        writes.index_add,
        ref.index_add,
        requires=_along_dim,
    ),
    op(
        "aten.index_copy",
        "self, dim, index, source",
        writes.index_copy,
        ref.index_copy,
        requires=_along_dim,
    ),
    op(
        "aten.index_fill",
        "int_Scalar int_Tensor: self, dim, index, value",
        writes.index_fill,
        ref.index_fill,
        requires=_along_dim,
    ),
    op(
        "aten.index_reduce",
        "self, dim, index, source, reduce, *, include_self=True",
        writes.index_reduce,
        ref.index_reduce,
        requires=_along_dim,
    ),
    op(
        "aten._unsafe_masked_index_put_accumulate",
        "self, mask, indices, values",
        writes.masked_put,
        ref.masked_put,
        requires=places_by_dimension,
    ),
    op(
        "aten.embedding_renorm",
        "self, indices, max_norm, norm_type",
        writes.embedding_renorm,
        ref.embedding_renorm,
        requires=rows_of("indices", "self"),
    ),
    op("aten.masked_scatter", "self, mask, source", writes.masked_scatter, ref.masked_scatter),
    op(
        "aten.put",
        "self, index, source, accumulate=False",
        writes.put,
        ref.put,
        requires=places_of_all("index"),
    ),
    op(
        "aten.embedding_dense_backward",
        "grad_output, indices, num_weights, padding_idx, scale_grad_by_freq",
        writes.embedding_dense_backward,
        ref.embedding_dense_backward,
        requires=rows_below("indices", "num_weights"),
    ),
)
