"""Rows of ops that read or write at indices, join tensors and pad them."""

from __future__ import annotations

from scheduler.ir.ops import Elements, op
from scheduler.ir.reference import indexing as ref
from scheduler.ir.reference.roles import classes, places_along_dim, places_by_dimension, rows_of
from scheduler.lowering import indexing, joining, pointwise, writes
from scheduler.lowering.externs import SIZED

ROWS = (
    op(
        "aten.embedding",
        "weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False",
        indexing.embedding,
        ref.embedding,
        requires=rows_of("indices", "weight"),
    ),
    op(
        "aten.gather",
        "self, dim, index, *, sparse_grad=False",
        indexing.gather,
        ref.gather,
        Elements.COPIED,
        requires=places_along_dim("index"),
    ),
    op(
        "aten.take_along_dim",
        "self, indices, dim=None",
        indexing.take_along_dim,
        ref.take_along_dim,
        Elements.COPIED,
        requires=places_along_dim("indices"),
    ),
    op(
        "aten.index",
        "Tensor: self, indices",
        indexing.index_op,
        ref.index,
        Elements.COPIED,
        requires=places_by_dimension,
    ),
    op("aten.nonzero", "self", SIZED, ref.nonzero),
    op(
        "aten.nonzero_static",
        "self, *, size, fill_value=-1",
        writes.nonzero_static,
        ref.nonzero_static,
    ),
    op("aten.nonzero_numpy", "self", SIZED, ref.nonzero_places),
    op("aten.argwhere", "self", SIZED, ref.nonzero),
    op("aten.masked_select", "self, mask", SIZED, ref.masked_select),
    op(
        "aten.index_select",
        "self, dim, index",
        indexing.index_select,
        ref.index_select,
        Elements.COPIED,
        requires=places_along_dim("index"),
    ),
    op("aten.cat", "tensors, dim=0", joining.cat, ref.cat, Elements.COPIED),
    op("aten.concat", "tensors, dim=0", joining.cat, ref.cat, Elements.COPIED),
    op("aten.stack", "tensors, dim=0", joining.stack, ref.stack, Elements.COPIED),
    op("aten.pad", "self, pad, mode='constant', value=None", joining.pad_op, ref.pad),
    op("aten.constant_pad_nd", "self, pad, value=0", joining.constant_pad, ref.pad),
    op("aten.diff", "self, n=1, dim=-1, prepend=None, append=None", joining.diff, ref.diff),
    op("aten.one_hot", "self, num_classes=-1", indexing.one_hot, ref.one_hot, requires=classes),
    op(
        "aten.fill_diagonal",  # that torch has in place alone
        "self, fill_value, wrap=False",
        pointwise.fill_diagonal,
        ref.fill_diagonal,
    ),
    op("aten.tril", "self, diagonal=0", pointwise.triangle("le"), ref.tril),
    op("aten.triu", "self, diagonal=0", pointwise.triangle("ge"), ref.triu),
)
