"""Rows of ops that make tensors."""

from __future__ import annotations

from scheduler.ir.ops import op
from scheduler.ir.reference import creation as ref
from scheduler.lowering import creation

#: What every op that makes a tensor takes, by keyword.
OPTIONS = "*, dtype=None, layout=None, device=None, pin_memory=None"

ROWS = (
    op(
        "aten.arange",
        f"end, {OPTIONS}; start: start, end, {OPTIONS}; start_step: start, end, step=1, {OPTIONS}",
        creation.arange,
        ref.arange,
    ),
    op("aten.linspace", f"start, end, steps, {OPTIONS}", creation.linspace, ref.linspace),
    op("aten.full", f"size, fill_value, {OPTIONS}", creation.full_op, ref.full),
    op(
        "aten.full_like",
        f"self, fill_value, {OPTIONS}, memory_format=None",
        creation.full_op,
        ref.like(None),
    ),
    op("aten.zeros", f"size, {OPTIONS}", creation.constant(0), ref.sized(0)),
    op("aten.ones", f"size, {OPTIONS}", creation.constant(1), ref.sized(1)),
    op(
        "aten.empty",
        f"memory_format: size, {OPTIONS}, memory_format=None",
        creation.constant(0),
        ref.sized(0),
    ),
    op(
        "aten.zeros_like", f"self, {OPTIONS}, memory_format=None", creation.constant(0), ref.like(0)
    ),
    op("aten.ones_like", f"self, {OPTIONS}, memory_format=None", creation.constant(1), ref.like(1)),
    op(
        "aten.empty_like", f"self, {OPTIONS}, memory_format=None", creation.constant(0), ref.like(0)
    ),
    op("aten.new_ones", f"self, size, {OPTIONS}", creation.constant(1), ref.like(1)),
    op("aten.new_zeros", f"self, size, {OPTIONS}", creation.constant(0), ref.like(0)),
    op("aten.new_empty", f"self, size, {OPTIONS}", creation.constant(0), ref.like(0)),
    op("aten.empty_strided", f"size, stride, {OPTIONS}", creation.constant(0), ref.sized(0)),
    op(
        "aten.empty_permuted",
        f"size, physical_layout, {OPTIONS}",
        creation.constant(0),
        ref.sized(0),
    ),
    op(
        "aten.new_empty_strided",
        f"self, size, stride, {OPTIONS}",
        creation.constant(0),
        ref.like(0),
    ),
    op("aten.new_full", f"self, size, fill_value, {OPTIONS}", creation.full_op, ref.like(None)),
    op("aten.scalar_tensor", f"s, {OPTIONS}", creation.scalar_tensor, ref.scalar_tensor),
    op(
        "prims.scalar_tensor",
        "default: s, *, dtype=None, device=None",
        creation.scalar_tensor,
        ref.scalar_tensor,
    ),
    op("aten.eye", f"n, {OPTIONS}; m: n, m, {OPTIONS}", creation.eye, ref.eye),
    op("aten.fill", "Scalar Tensor: self, value", creation.fill, ref.fill),
    op("aten.zero", "self", creation.constant(0), ref.zero),
)
