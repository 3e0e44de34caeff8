"""Rows of diagonals, rotations, shuffles, concatenations and splits of tensors."""

from __future__ import annotations

from functools import partial

from scheduler.ir.ops import Elements, NoKernel, op
from scheduler.ir.reference import data_movement as ref
from scheduler.ir.reference.constraints import flat_indices
from scheduler.lowering import data_movement as rules
from scheduler.lowering import views

_view_op = partial(op, elements=Elements.VIEWED)
_copy_op = partial(op, elements=Elements.COPIED)

ROWS = (
    _copy_op("aten.rot90", "self, k=1, dims=(0, 1)", rules.rot90, ref.rot90),
    _copy_op("aten.fliplr", "self", rules.fliplr, ref.fliplr),
    _copy_op("aten.flipud", "self", rules.flipud, ref.flipud),
    op("aten.diag", "self, diagonal=0", rules.diag, ref.diag),
    op("aten.diagflat", "self, offset=0", rules.diagflat, ref.diagflat),
    op("aten.diag_embed", "self, offset=0, dim1=-2, dim2=-1", rules.diag_embed, ref.diag_embed),
    _view_op(
        "aten.linalg_diagonal",
        "A, *, offset=0, dim1=-2, dim2=-1",
        rules.linalg_diagonal,
        ref.linalg_diagonal,
    ),
    op("aten.trace", "self", rules.trace, ref.trace),
    _view_op(
        "aten.tensor_split",
        "sections: self, sections, dim=0; indices: self, indices, dim=0; "
        "tensor_indices_or_sections: self, tensor_indices_or_sections, dim=0",
        views.split_op,
        ref.tensor_split,
    ),
    op("aten._chunk_cat", "tensors, dim, num_chunks", rules.chunk_cat, ref.chunk_cat),
    _copy_op(
        "aten.flatten_dense_tensors",
        "tensors",
        rules.flatten_dense_tensors,
        ref.flatten_dense_tensors,
    ),
    op(
        "aten.combinations",
        "self, r=2, with_replacement=False",
        NoKernel("torch exports its number of rows as a data-dependent size"),
        ref.combinations,
    ),
    _view_op(
        "aten.hsplit", "int: self, sections; array: self, indices", rules.hsplit, ref.split_along(1)
    ),
    _view_op(
        "aten.vsplit", "int: self, sections; array: self, indices", rules.vsplit, ref.split_along(0)
    ),
    _view_op(
        "aten.dsplit", "int: self, sections; array: self, indices", rules.dsplit, ref.split_along(2)
    ),
    _view_op("aten.atleast_1d", "self; Sequence: tensors", rules.atleast, ref.atleast(1)),
    _view_op("aten.atleast_2d", "self; Sequence: tensors", rules.atleast, ref.atleast(2)),
    _view_op("aten.atleast_3d", "self; Sequence: tensors", rules.atleast, ref.atleast(3)),
    _copy_op("aten.hstack", "tensors", rules.hstack, ref.hstack),
    _copy_op("aten.vstack", "tensors", rules.vstack, ref.vstack),
    _copy_op("aten.dstack", "tensors", rules.dstack, ref.dstack),
    _copy_op("aten.column_stack", "tensors", rules.column_stack, ref.column_stack),
    op("aten.block_diag", "tensors", rules.block_diag, ref.block_diag),
    op("aten.cartesian_prod", "tensors", rules.cartesian_prod, ref.cartesian_prod),
    op(
        "aten.pixel_unshuffle", "self, downscale_factor", rules.pixel_unshuffle, ref.pixel_unshuffle
    ),
    op("aten.channel_shuffle", "self, groups", rules.channel_shuffle, ref.channel_shuffle),
    _copy_op("aten.take", "self, index", rules.take, ref.take, requires=flat_indices("index")),
    op("aten.ravel", "self", views.view, ref.ravel, Elements.VIEWED_IF_CONTIGUOUS),
    op("aten.vander", "x, N=None, increasing=False", rules.vander, ref.vander),
    op("aten.matrix_power", "self, n", rules.matrix_power, ref.matrix_power),
    op("aten.sum_to_size", "self, size", rules.sum_to_size, ref.sum_to_size),
    op(
        "aten._unsafe_masked_index",
        "self, mask, indices, fill",
        rules.unsafe_masked_index,
        ref.unsafe_masked_index,
    ),
)
