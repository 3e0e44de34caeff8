"""Rows of views: other shapes of the same elements."""

from __future__ import annotations

from functools import partial

from scheduler.ir.ops import Elements, op
from scheduler.ir.reference import indexing as ref_indexing
from scheduler.ir.reference import views as ref
from scheduler.lowering import bitcast, searchsorted
from scheduler.lowering import views as rules

_view_op = partial(op, elements=Elements.VIEWED)

ROWS = (
    _view_op(
        "aten.slice",
        "Tensor: self, dim=0, start=None, end=None, step=1",
        rules.slice_op,
        ref.slice_op,
    ),
    _view_op("aten.select", "int: self, dim, index", rules.select, ref.select),
    _view_op("aten.narrow", "self, dim, start, length", rules.narrow, ref.narrow),
    _view_op(
        "aten.split",
        "Tensor sizes: self, split_size, dim=0; self, split_sizes, dim=0",
        rules.split_op,
        ref.split,
    ),
    _view_op("aten.split_with_sizes", "self, split_sizes, dim=0", rules.split_op, ref.split),
    _view_op("aten.chunk", "self, chunks, dim=0", rules.split_op, ref.chunk),
    _view_op("aten.unbind", "int: self, dim=0", rules.unbind, ref.unbind),
    op("aten.flip", "self, dims", rules.flip, ref_indexing.flip, Elements.COPIED),
    op("aten.roll", "self, shifts, dims=()", rules.roll, ref_indexing.roll, Elements.COPIED),
    op("aten.repeat", "self, repeats", rules.repeat, ref_indexing.repeat, Elements.COPIED),
    op("aten.tile", "self, dims", rules.repeat, ref_indexing.repeat, Elements.COPIED),
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
        rules.meshgrid,
        ref_indexing.meshgrid,
    ),
    op("aten.broadcast_tensors", "tensors", rules.broadcast_tensors, ref.broadcast_tensors),
    op(
        "aten.pixel_shuffle",
        "self, upscale_factor",
        rules.pixel_shuffle,
        ref_indexing.pixel_shuffle,
    ),
    _view_op("aten.expand", "self, size, *, implicit=False", rules.expand, ref.expand),
    _view_op("aten.view", "default: self, size; dtype: self, dtype", bitcast.view, ref.view),
    _view_op("aten._unsafe_view", "self, size", rules.view, ref.view),
    _view_op("aten.broadcast_to", "self, size", rules.expand, ref.expand),
    op("aten.reshape", "self, shape", rules.view, ref.view, Elements.RESHAPED),
    _view_op("aten.expand_as", "self, other", rules.expand, ref.expand_as),
    _view_op("aten.view_as", "self, other", rules.view, ref.view_as),
    op("aten.reshape_as", "self, other", rules.view, ref.view_as, Elements.RESHAPED),
    _view_op("aten.permute", "self, dims", rules.permute_op, ref.permute),
    _view_op(
        "aten.transpose", "int: self, dim0, dim1", rules.transpose_op, ref.swap_dims("dim0", "dim1")
    ),
    _view_op(
        "aten.swapdims", "self, dim0, dim1", rules.transpose_op, ref.swap_dims("dim0", "dim1")
    ),
    _view_op(
        "aten.swapaxes", "self, axis0, axis1", rules.swapaxes, ref.swap_dims("axis0", "axis1")
    ),
    _view_op("aten.movedim", "int intlist: self, source, destination", rules.movedim, ref.movedim),
    _view_op("aten.t", "self", rules.t, ref.t),
    _view_op("aten.mT", "self", rules.transpose_last, ref.transpose_last),
    _view_op("aten.numpy_T", "self", rules.t, ref.t),
    _view_op("aten.squeeze", "self; dim dims: self, dim", rules.view, ref.squeeze),
    op(
        "aten.flatten",
        "using_ints: self, start_dim=0, end_dim=-1",
        rules.view,
        ref.flatten,
        Elements.RESHAPED,
    ),
    _view_op("aten.unflatten", "int: self, dim, sizes", rules.view, ref.unflatten),
    _view_op("aten.unsqueeze", "self, dim", rules.unsqueeze, ref.unsqueeze),
    _view_op("aten.diagonal", "self, offset=0, dim1=0, dim2=1", rules.diagonal, ref.diagonal),
    _view_op("aten.unfold", "self, dimension, size, step", rules.unfold, ref.unfold),
)
