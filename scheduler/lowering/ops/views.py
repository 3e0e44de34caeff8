"""Rows of views: other shapes of the same elements."""

from __future__ import annotations

from scheduler.ir.ops import Elements, op
from scheduler.ir.reference import indexing as ref_indexing
from scheduler.ir.reference import views as ref
from scheduler.lowering import bitcast, searchsorted, views

ROWS = (
    op(
        "aten.slice",
        "Tensor: self, dim=0, start=None, end=None, step=1",
        views.slice_op,
        ref.slice_op,
        Elements.VIEWED,
    ),
    op("aten.select", "int: self, dim, index", views.select, ref.select, Elements.VIEWED),
    op("aten.narrow", "self, dim, start, length", views.narrow, ref.narrow, Elements.VIEWED),
    op(
        "aten.split",
        "Tensor sizes: self, split_size, dim=0; self, split_sizes, dim=0",
        views.split_op,
        ref.split,
        Elements.VIEWED,
    ),
    op(
        "aten.split_with_sizes",
        "self, split_sizes, dim=0",
        views.split_op,
        ref.split,
        Elements.VIEWED,
    ),
    op("aten.chunk", "self, chunks, dim=0", views.split_op, ref.chunk, Elements.VIEWED),
    op("aten.unbind", "int: self, dim=0", views.unbind, ref.unbind, Elements.VIEWED),
    op("aten.flip", "self, dims", views.flip, ref_indexing.flip, Elements.COPIED),
    op("aten.roll", "self, shifts, dims=()", views.roll, ref_indexing.roll, Elements.COPIED),
    op("aten.repeat", "self, repeats", views.repeat, ref_indexing.repeat, Elements.COPIED),
    op("aten.tile", "self, dims", views.repeat, ref_indexing.repeat, Elements.COPIED),
    op(
        "aten.repeat_interleave",
        "self_int self_Tensor: self, repeats, dim=None, *, output_size=None; "
        "Tensor: repeats, *, output_size=None",
        searchsorted.repeat_interleave,
        ref_indexing.repeat_interleave,
        Elements.COPIED,
    ),
    op(
        "aten.meshgrid",
        "tensors; indexing: tensors, *, indexing",
        views.meshgrid,
        ref_indexing.meshgrid,
    ),
    op("aten.broadcast_tensors", "tensors", views.broadcast_tensors, ref.broadcast_tensors),
    op(
        "aten.pixel_shuffle",
        "self, upscale_factor",
        views.pixel_shuffle,
        ref_indexing.pixel_shuffle,
    ),
    op("aten.expand", "self, size, *, implicit=False", views.expand, ref.expand, Elements.VIEWED),
    op(
        "aten.view",
        "default: self, size; dtype: self, dtype",
        bitcast.view,
        ref.view,
        Elements.VIEWED,
    ),
    op("aten._unsafe_view", "self, size", views.view, ref.view, Elements.VIEWED),
    op("aten.broadcast_to", "self, size", views.expand, ref.expand, Elements.VIEWED),
    op("aten.reshape", "self, shape", views.view, ref.view, Elements.RESHAPED),
    op("aten.expand_as", "self, other", views.expand, ref.expand_as, Elements.VIEWED),
    op("aten.view_as", "self, other", views.view, ref.view_as, Elements.VIEWED),
    op("aten.reshape_as", "self, other", views.view, ref.view_as, Elements.RESHAPED),
    op("aten.permute", "self, dims", views.permute_op, ref.permute, Elements.VIEWED),
    op(
        "aten.transpose",
        "int: self, dim0, dim1",
        views.transpose_op,
        ref.swap_dims("dim0", "dim1"),
        Elements.VIEWED,
    ),
    op(
        "aten.swapdims",
        "self, dim0, dim1",
        views.transpose_op,
        ref.swap_dims("dim0", "dim1"),
        Elements.VIEWED,
    ),
    op(
        "aten.swapaxes",
        "self, axis0, axis1",
        views.swapaxes,
        ref.swap_dims("axis0", "axis1"),
        Elements.VIEWED,
    ),
    op(
        "aten.movedim",
        "int intlist: self, source, destination",
        views.movedim,
        ref.movedim,
        Elements.VIEWED,
    ),
    op("aten.t", "self", views.t, ref.t, Elements.VIEWED),
    op("aten.mT", "self", views.transpose_last, ref.transpose_last, Elements.VIEWED),
    op("aten.numpy_T", "self", views.t, ref.t, Elements.VIEWED),
    op("aten.squeeze", "self; dim dims: self, dim", views.view, ref.squeeze, Elements.VIEWED),
    op(
        "aten.flatten",
        "using_ints: self, start_dim=0, end_dim=-1",
        views.view,
        ref.flatten,
        Elements.RESHAPED,
    ),
    op("aten.unflatten", "int: self, dim, sizes", views.view, ref.unflatten, Elements.VIEWED),
    op("aten.unsqueeze", "self, dim", views.unsqueeze, ref.unsqueeze, Elements.VIEWED),
    op(
        "aten.diagonal",
        "self, offset=0, dim1=0, dim2=1",
        views.diagonal,
        ref.diagonal,
        Elements.VIEWED,
    ),
    op("aten.unfold", "self, dimension, size, step", views.unfold, ref.unfold, Elements.VIEWED),
)
