"""Rows of diagonals, turned, shuffled and joined tensors, and of their pieces."""

from __future__ import annotations

from scheduler.ir.ops import Elements, NoKernel, op
from scheduler.ir.reference import rearranging as ref
from scheduler.ir.reference.roles import places_of_all
from scheduler.lowering import rearranging, views

ROWS = (
    op("aten.rot90", "self, k=1, dims=(0, 1)", rearranging.rot90, ref.rot90, Elements.COPIED),
    op("aten.fliplr", "self", rearranging.fliplr, ref.fliplr, Elements.COPIED),
    op("aten.flipud", "self", rearranging.flipud, ref.flipud, Elements.COPIED),
    op("aten.diag", "self, diagonal=0", rearranging.diag, ref.diag),
    op("aten.diagflat", "self, offset=0", rearranging.diagflat, ref.diagflat),
    op(
        "aten.diag_embed",
        "self, offset=0, dim1=-2, dim2=-1",
        rearranging.diag_embed,
        ref.diag_embed,
    ),
    op(
        "aten.linalg_diagonal",
        "A, *, offset=0, dim1=-2, dim2=-1",
        rearranging.linalg_diagonal,
        ref.linalg_diagonal,
        Elements.VIEWED,
    ),
    op("aten.trace", "self", rearranging.trace, ref.trace),
    op(
        "aten.tensor_split",
        "sections: self, sections, dim=0; indices: self, indices, dim=0; "
        "tensor_indices_or_sections: self, tensor_indices_or_sections, dim=0",
        views.split_op,
        ref.tensor_split,
        Elements.VIEWED,
    ),
    op("aten._chunk_cat", "tensors, dim, num_chunks", rearranging.chunk_cat, ref.chunk_cat),
    op(
        "aten.flatten_dense_tensors",
        "tensors",
        rearranging.flatten_dense_tensors,
        ref.flatten_dense_tensors,
        Elements.COPIED,
    ),
    op(
        "aten.combinations",
        "self, r=2, with_replacement=False",
        NoKernel("torch exports its number of rows as one that depends on data"),
        ref.combinations,
    ),
    op(
        "aten.hsplit",
        "int: self, sections; array: self, indices",
        rearranging.hsplit,
        ref.split_along(1),
        Elements.VIEWED,
    ),
    op(
        "aten.vsplit",
        "int: self, sections; array: self, indices",
        rearranging.vsplit,
        ref.split_along(0),
        Elements.VIEWED,
    ),
    op(
        "aten.dsplit",
        "int: self, sections; array: self, indices",
        rearranging.dsplit,
        ref.split_along(2),
        Elements.VIEWED,
    ),
    op(
        "aten.atleast_1d",
        "self; Sequence: tensors",
        rearranging.atleast,
        ref.atleast(1),
        Elements.VIEWED,
    ),
    op(
        "aten.atleast_2d",
        "self; Sequence: tensors",
        rearranging.atleast,
        ref.atleast(2),
        Elements.VIEWED,
    ),
    op(
        "aten.atleast_3d",
        "self; Sequence: tensors",
        rearranging.atleast,
        ref.atleast(3),
        Elements.VIEWED,
    ),
    op("aten.hstack", "tensors", rearranging.hstack, ref.hstack, Elements.COPIED),
    op("aten.vstack", "tensors", rearranging.vstack, ref.vstack, Elements.COPIED),
    op("aten.dstack", "tensors", rearranging.dstack, ref.dstack, Elements.COPIED),
    op("aten.column_stack", "tensors", rearranging.column_stack, ref.column_stack, Elements.COPIED),
    op("aten.block_diag", "tensors", rearranging.block_diag, ref.block_diag),
    op("aten.cartesian_prod", "tensors", rearranging.cartesian_prod, ref.cartesian_prod),
    op(
        "aten.pixel_unshuffle",
        "self, downscale_factor",
        rearranging.pixel_unshuffle,
        ref.pixel_unshuffle,
    ),
    op(
        "aten.channel_shuffle",
        "self, groups",
        rearranging.channel_shuffle,
        ref.channel_shuffle,
    ),
    op(
        "aten.take",
        "self, index",
        rearranging.take,
        ref.take,
        Elements.COPIED,
        requires=places_of_all("index"),
    ),
    op("aten.ravel", "self", views.view, ref.ravel, Elements.VIEWED_IF_CONTIGUOUS),
    op("aten.vander", "x, N=None, increasing=False", rearranging.vander, ref.vander),
    op("aten.matrix_power", "self, n", rearranging.matrix_power, ref.matrix_power),
    op(
        "aten.sum_to_size",
        "self, size",
        rearranging.sum_to_size,
        ref.sum_to_size,
    ),
    op(
        "aten._unsafe_masked_index",
        "self, mask, indices, fill",
        rearranging.unsafe_masked_index,
        ref.unsafe_masked_index,
    ),
)
