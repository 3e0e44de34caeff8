"""Rows of diagonals, rotations, shuffles, concatenations and splits of tensors."""

from __future__ import annotations

from scheduler.ir.ops import Elements, NoKernel, op
from scheduler.ir.reference import data_movement as ref
from scheduler.ir.reference.constraints import flat_indices
from scheduler.lowering import data_movement, views

ROWS = (
    op("aten.rot90", "self, k=1, dims=(0, 1)", data_movement.rot90, ref.rot90, Elements.COPIED),
    op("aten.fliplr", "self", data_movement.fliplr, ref.fliplr, Elements.COPIED),
    op("aten.flipud", "self", data_movement.flipud, ref.flipud, Elements.COPIED),
    op("aten.diag", "self, diagonal=0", data_movement.diag, ref.diag),
    op("aten.diagflat", "self, offset=0", data_movement.diagflat, ref.diagflat),
    op(
        "aten.diag_embed",
        "self, offset=0, dim1=-2, dim2=-1",
        data_movement.diag_embed,
        ref.diag_embed,
    ),
    op(
        "aten.linalg_diagonal",
        "A, *, offset=0, dim1=-2, dim2=-1",
        data_movement.linalg_diagonal,
        ref.linalg_diagonal,
        Elements.VIEWED,
    ),
    op("aten.trace", "self", data_movement.trace, ref.trace),
    op(
        "aten.tensor_split",
        "sections: self, sections, dim=0; indices: self, indices, dim=0; "
        "tensor_indices_or_sections: self, tensor_indices_or_sections, dim=0",
        views.split_op,
        ref.tensor_split,
        Elements.VIEWED,
    ),
    op("aten._chunk_cat", "tensors, dim, num_chunks", data_movement.chunk_cat, ref.chunk_cat),
    op(
        "aten.flatten_dense_tensors",
        "tensors",
        data_movement.flatten_dense_tensors,
        ref.flatten_dense_tensors,
        Elements.COPIED,
    ),
    op(
        "aten.combinations",
        "self, r=2, with_replacement=False",
        NoKernel("torch exports its number of rows as a data-dependent size"),
        ref.combinations,
    ),
    op(
        "aten.hsplit",
        "int: self, sections; array: self, indices",
        data_movement.hsplit,
        ref.split_along(1),
        Elements.VIEWED,
    ),
    op(
        "aten.vsplit",
        "int: self, sections; array: self, indices",
        data_movement.vsplit,
        ref.split_along(0),
        Elements.VIEWED,
    ),
    op(
        "aten.dsplit",
        "int: self, sections; array: self, indices",
        data_movement.dsplit,
        ref.split_along(2),
        Elements.VIEWED,
    ),
    op(
        "aten.atleast_1d",
        "self; Sequence: tensors",
        data_movement.atleast,
        ref.atleast(1),
        Elements.VIEWED,
    ),
    op(
        "aten.atleast_2d",
        "self; Sequence: tensors",
        data_movement.atleast,
        ref.atleast(2),
        Elements.VIEWED,
    ),
    op(
        "aten.atleast_3d",
        "self; Sequence: tensors",
        data_movement.atleast,
        ref.atleast(3),
        Elements.VIEWED,
    ),
    op("aten.hstack", "tensors", data_movement.hstack, ref.hstack, Elements.COPIED),
    op("aten.vstack", "tensors", data_movement.vstack, ref.vstack, Elements.COPIED),
    op("aten.dstack", "tensors", data_movement.dstack, ref.dstack, Elements.COPIED),
    op(
        "aten.column_stack",
        "tensors",
        data_movement.column_stack,
        ref.column_stack,
        Elements.COPIED,
    ),
    op("aten.block_diag", "tensors", data_movement.block_diag, ref.block_diag),
    op("aten.cartesian_prod", "tensors", data_movement.cartesian_prod, ref.cartesian_prod),
    op(
        "aten.pixel_unshuffle",
        "self, downscale_factor",
        data_movement.pixel_unshuffle,
        ref.pixel_unshuffle,
    ),
    op("aten.channel_shuffle", "self, groups", data_movement.channel_shuffle, ref.channel_shuffle),
    op(
        "aten.take",
        "self, index",
        data_movement.take,
        ref.take,
        Elements.COPIED,
        requires=flat_indices("index"),
    ),
    op("aten.ravel", "self", views.view, ref.ravel, Elements.VIEWED_IF_CONTIGUOUS),
    op("aten.vander", "x, N=None, increasing=False", data_movement.vander, ref.vander),
    op("aten.matrix_power", "self, n", data_movement.matrix_power, ref.matrix_power),
    op("aten.sum_to_size", "self, size", data_movement.sum_to_size, ref.sum_to_size),
    op(
        "aten._unsafe_masked_index",
        "self, mask, indices, fill",
        data_movement.unsafe_masked_index,
        ref.unsafe_masked_index,
    ),
)
