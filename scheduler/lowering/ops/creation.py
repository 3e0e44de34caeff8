"""Rows of ops that create tensors."""

from __future__ import annotations

from scheduler.ir.ops import op
from scheduler.ir.reference import creation as ref
from scheduler.ir.reference import normalization as ref_normalization
from scheduler.lowering import creation as rules
from scheduler.lowering import window_functions as windows

#: Keyword arguments of every op that creates a tensor.
OPTIONS = "*, dtype=None, layout=None, device=None, pin_memory=None"
WINDOW = f"window_length, {OPTIONS}; periodic: window_length, periodic, {OPTIONS}"

ROWS = (
    op(
        "aten.arange",
        f"end, {OPTIONS}; start: start, end, {OPTIONS}; start_step: start, end, step=1, {OPTIONS}",
        rules.arange,
        ref.arange,
    ),
    op(
        "aten.linspace",
        f"default Tensor_Tensor Tensor_Scalar Scalar_Tensor: start, end, steps, {OPTIONS}",
        rules.linspace,
        ref.linspace,
    ),
    op(
        "aten.logspace",
        "default Tensor_Tensor Tensor_Scalar Scalar_Tensor: start, end, steps, base=10.0, "
        f"{OPTIONS}",
        rules.logspace,
        ref.logspace,
    ),
    op(
        "aten.tril_indices",
        f"row, col, offset=0, {OPTIONS}",
        rules.triangle_indices(lower=True),
        ref.triangle_indices(lower=True),
    ),
    op(
        "aten.triu_indices",
        f"row, col, offset=0, {OPTIONS}",
        rules.triangle_indices(lower=False),
        ref.triangle_indices(lower=False),
    ),
    op("aten.hann_window", f"{WINDOW}", windows.cosines(0.5, 0.5), ref.cosines(0.5, 0.5)),
    op(
        "aten.hamming_window",
        f"{WINDOW}; periodic_alpha: window_length, periodic, alpha, {OPTIONS}; "
        f"periodic_alpha_beta: window_length, periodic, alpha, beta, {OPTIONS}",
        windows.cosines(0.54, 0.46),
        ref.cosines(0.54, 0.46),
    ),
    op(
        "aten.blackman_window",
        f"{WINDOW}",
        windows.cosines(0.42, 0.5, 0.08),
        ref.cosines(0.42, 0.5, 0.08),
    ),
    op("aten.bartlett_window", f"{WINDOW}", windows.bartlett, ref.bartlett),
    op(
        "aten.kaiser_window",
        f"{WINDOW}; beta: window_length, periodic, beta, {OPTIONS}",
        windows.kaiser,
        ref.kaiser,
    ),
    op(
        "aten.norm_except_dim",
        "v, pow=2, dim=0",
        windows.norm_except,
        ref_normalization.norm_except,
    ),
    op("aten._weight_norm", "v, g, dim=0", windows.weight_norm, ref_normalization.weight_norm),
    op(
        "aten._weight_norm_interface",
        "v, g, dim=0",
        windows.weight_norm_interface,
        ref_normalization.weight_norm_interface,
    ),
    op("aten.full", f"size, fill_value, {OPTIONS}", rules.full_op, ref.full),
    op(
        "aten.full_like",
        f"self, fill_value, {OPTIONS}, memory_format=None",
        rules.full_op,
        ref.constant_like(None),
    ),
    op("aten.zeros", f"size, {OPTIONS}", rules.constant(0), ref.constant(0)),
    op("aten.ones", f"size, {OPTIONS}", rules.constant(1), ref.constant(1)),
    op(
        "aten.empty",
        f"memory_format: size, {OPTIONS}, memory_format=None",
        rules.constant(0),
        ref.constant(0),
    ),
    op(
        "aten.zeros_like",
        f"self, {OPTIONS}, memory_format=None",
        rules.constant(0),
        ref.constant_like(0),
    ),
    op(
        "aten.ones_like",
        f"self, {OPTIONS}, memory_format=None",
        rules.constant(1),
        ref.constant_like(1),
    ),
    op(
        "aten.empty_like",
        f"self, {OPTIONS}, memory_format=None",
        rules.constant(0),
        ref.constant_like(0),
    ),
    op("aten.new_ones", f"self, size, {OPTIONS}", rules.constant(1), ref.constant_like(1)),
    op("aten.new_zeros", f"self, size, {OPTIONS}", rules.constant(0), ref.constant_like(0)),
    op("aten.new_empty", f"self, size, {OPTIONS}", rules.constant(0), ref.constant_like(0)),
    op("aten.empty_strided", f"size, stride, {OPTIONS}", rules.constant(0), ref.constant(0)),
    op(
        "aten.empty_permuted",
        f"size, physical_layout, {OPTIONS}",
        rules.constant(0),
        ref.constant(0),
    ),
    op(
        "aten.new_empty_strided",
        f"self, size, stride, {OPTIONS}",
        rules.constant(0),
        ref.constant_like(0),
    ),
    op(
        "aten.new_full",
        f"self, size, fill_value, {OPTIONS}",
        rules.full_op,
        ref.constant_like(None),
    ),
    op("aten.scalar_tensor", f"s, {OPTIONS}", rules.scalar_tensor, ref.scalar_tensor),
    op(
        "prims.scalar_tensor",
        "default: s, *, dtype=None, device=None",
        rules.scalar_tensor,
        ref.scalar_tensor,
    ),
    op("aten.eye", f"n, {OPTIONS}; m: n, m, {OPTIONS}", rules.eye, ref.eye),
    op("aten.fill", "Scalar Tensor: self, value", rules.fill, ref.fill),
    op("aten.zero", "self", rules.constant(0), ref.zero),
)
