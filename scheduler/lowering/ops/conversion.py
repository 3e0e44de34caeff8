"""Rows of ops that only change a tensor's type or memory, and of assertions."""

from __future__ import annotations

from scheduler.ir.ops import Elements, op
from scheduler.ir.reference import creation as ref
from scheduler.ir.reference import views as ref_views
from scheduler.lowering import pointwise as rules
from scheduler.lowering import views

ROWS = (
    op(
        "aten.to",
        "device: self, device, dtype, non_blocking=False, copy=False, memory_format=None; "
        "dtype: self, dtype, non_blocking=False, copy=False, memory_format=None; "
        "other: self, other, non_blocking=False, copy=False, memory_format=None; "
        "dtype_layout: self, *, dtype=None, layout=None, device=None, pin_memory=None, "
        "non_blocking=False, copy=False, memory_format=None",
        rules.to,
        ref.to_dispatch,
        Elements.CONVERTED,
    ),
    op(
        "aten._to_copy",
        "self, *, dtype=None, layout=None, device=None, pin_memory=None, "
        "non_blocking=False, memory_format=None",
        rules.to,
        ref.to_copy,
        Elements.CONVERTED_COPY,
    ),
    op("aten.type_as", "self, other", rules.to, ref.to_like, Elements.CONVERTED),
    op("aten.copy", "self, src, non_blocking=False", rules.copy, ref.copy),
    op(
        "aten.clone",
        "self, *, memory_format=None",
        views.identity,
        ref_views.lift_fresh_copy,
        Elements.COPIED,
    ),
    op(
        "aten.contiguous",
        "self, *, memory_format=None",
        views.identity,
        ref_views.contiguous,
        Elements.VIEWED_IF_CONTIGUOUS,
    ),
    op("aten.alias", "self", views.identity, ref_views.identity, Elements.VIEWED),
    op("aten.detach", "self", views.identity, ref_views.identity, Elements.VIEWED),
    op("aten.lift_fresh", "self", views.identity, ref_views.identity, Elements.VIEWED),
    op("aten.lift_fresh_copy", "self", views.identity, ref_views.lift_fresh_copy, Elements.COPIED),
    op(
        "aten._assert_tensor_metadata",
        "a, size=None, stride=None, dtype=None, *, device=None, layout=None",
        rules.no_op,
        ref.no_op,
    ),
    op("aten._assert_scalar", "self, assert_msg", rules.assertion, ref.assert_true),
    op("aten._assert_async", "msg: self, assert_msg; self", rules.assertion, ref.assert_true),
)
