"""Rows of ops that read or write at indices, concatenate tensors and pad them."""

from __future__ import annotations

from scheduler.ir.ops import Elements, op
from scheduler.ir.reference import indexing as ref
from scheduler.ir.reference.constraints import (
    class_indices,
    dim_indices,
    per_dim_indices,
    row_indices,
)
from scheduler.lowering import concat, index_put, pointwise
from scheduler.lowering import indexing as rules
from scheduler.lowering.errors import DATA_DEPENDENT_SIZE

ROWS = (
    op(
        "aten.embedding",
        "weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False",
        rules.embedding,
        ref.embedding,
        requires=row_indices("indices", "weight"),
    ),
    op(
        "aten.gather",
        "self, dim, index, *, sparse_grad=False",
        rules.gather,
        ref.gather,
        Elements.COPIED,
        requires=dim_indices("index"),
    ),
    op(
        "aten.take_along_dim",
        "self, indices, dim=None",
        rules.take_along_dim,
        ref.take_along_dim,
        Elements.COPIED,
        requires=dim_indices("indices"),
    ),
    op(
        "aten.index",
        "Tensor: self, indices",
        rules.index_op,
        ref.index,
        Elements.COPIED,
        requires=per_dim_indices,
    ),
    op("aten.nonzero", "self", DATA_DEPENDENT_SIZE, ref.nonzero),
    op(
        "aten.nonzero_static",
        "self, *, size, fill_value=-1",
        index_put.nonzero_static,
        ref.nonzero_static,
    ),
    op("aten.nonzero_numpy", "self", DATA_DEPENDENT_SIZE, ref.nonzero_places),
    op("aten.argwhere", "self", DATA_DEPENDENT_SIZE, ref.nonzero),
    op("aten.masked_select", "self, mask", DATA_DEPENDENT_SIZE, ref.masked_select),
    op(
        "aten.index_select",
        "self, dim, index",
        rules.index_select,
        ref.index_select,
        Elements.COPIED,
        requires=dim_indices("index"),
    ),
    op("aten.cat", "tensors, dim=0", concat.cat, ref.cat, Elements.COPIED),
    op("aten.concat", "tensors, dim=0", concat.cat, ref.cat, Elements.COPIED),
    op("aten.stack", "tensors, dim=0", concat.stack, ref.stack, Elements.COPIED),
    op("aten.pad", "self, pad, mode='constant', value=None", concat.pad_op, ref.pad),
    op("aten.constant_pad_nd", "self, pad, value=0", concat.constant_pad, ref.pad),
    op("aten.diff", "self, n=1, dim=-1, prepend=None, append=None", concat.diff, ref.diff),
    op("aten.one_hot", "self, num_classes=-1", rules.one_hot, ref.one_hot, requires=class_indices),
    op(
        "aten.fill_diagonal",  # torch only has the in-place form
        "self, fill_value, wrap=False",
        pointwise.fill_diagonal,
        ref.fill_diagonal,
    ),
    op("aten.tril", "self, diagonal=0", pointwise.triangle("le"), ref.tril),
    op("aten.triu", "self, diagonal=0", pointwise.triangle("ge"), ref.triu),
)
