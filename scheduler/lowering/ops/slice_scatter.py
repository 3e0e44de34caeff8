"""Rows of ops that read part of memory by strides or replace part of a tensor, and of their
gradients."""

from __future__ import annotations

from scheduler.ir.ops import Elements, op
from scheduler.ir.reference import index_put as ref
from scheduler.ir.reference import views as ref_views
from scheduler.lowering import slice_scatter as rules
from scheduler.lowering import strided

_GRADIENT = "grad_output, input_sizes"
_STRIDED = "size, stride, storage_offset=None"

ROWS = (
    op(
        "aten.slice_scatter",
        "self, src, dim=0, start=None, end=None, step=1",
        rules.slice_scatter,
        ref.slice_scatter,
    ),
    op("aten.select_scatter", "self, src, dim, index", rules.select_scatter, ref.select_scatter),
    op(
        "aten.diagonal_scatter",
        "self, src, offset=0, dim1=0, dim2=1",
        rules.diagonal_scatter,
        ref.diagonal_scatter,
    ),
    op(
        "aten.select_backward",
        f"{_GRADIENT}, dim, index",
        rules.select_backward,
        ref.select_backward,
    ),
    op(
        "aten.slice_backward",
        f"{_GRADIENT}, dim, start, end, step",
        rules.slice_backward,
        ref.slice_backward,
    ),
    op(
        "aten.diagonal_backward",
        f"{_GRADIENT}, offset, dim1, dim2",
        rules.diagonal_backward,
        ref.diagonal_backward,
    ),
    op(
        "aten.unfold_backward",
        "grad_in, input_sizes, dim, size, step",
        rules.unfold_backward,
        ref.unfold_backward,
    ),
    op(
        "aten.as_strided",
        f"self, {_STRIDED}",
        strided.as_strided,
        ref_views.as_strided,
        Elements.VIEWED,
    ),
    op(
        "aten.resize",
        "self, size, *, memory_format=None",
        strided.resize,
        ref_views.resize,
        Elements.VIEWED,
    ),
    op(
        "aten.resize_as",
        "self, the_template, *, memory_format=None",
        strided.resize,
        ref_views.resize,
        Elements.VIEWED,
    ),
    op(
        "aten.as_strided_copy",
        f"self, {_STRIDED}",
        strided.as_strided,
        ref_views.as_strided_copy,
        Elements.COPIED,
    ),
    op(
        "aten.as_strided_scatter",
        f"self, src, {_STRIDED}",
        strided.as_strided_scatter,
        ref_views.as_strided_scatter,
    ),
)
