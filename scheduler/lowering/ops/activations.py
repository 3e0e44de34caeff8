"""Rows of activation functions."""

from __future__ import annotations

from scheduler.ir.ops import op
from scheduler.ir.reference import activations as ref
from scheduler.lowering import activations
from scheduler.lowering.pointwise import unary_function

ROWS = (
    op("aten.logaddexp", "self, other", activations.logaddexp, ref.logaddexp),
    op("aten.relu", "self", unary_function(activations.relu), ref.relu),
    op("aten.relu6", "self", unary_function(activations.relu6), ref.relu6),
    op("aten.silu", "self", unary_function(activations.silu), ref.silu),
    op("aten.hardswish", "self", unary_function(activations.hard_swish), ref.hardswish),
    op("aten.hardsigmoid", "self", unary_function(activations.hard_sigmoid), ref.hardsigmoid),
    op("aten.mish", "self", unary_function(activations.mish), ref.mish),
    op("aten.log_sigmoid", "self", unary_function(activations.log_sigmoid), ref.log_sigmoid),
    op("aten.selu", "self", unary_function(activations.selu), ref.selu),
    op("aten.gelu", "self, *, approximate='none'", activations.gelu_op, ref.gelu),
    op("aten.elu", "self, alpha=1, scale=1, input_scale=1", activations.elu, ref.elu),
    op("aten.leaky_relu", "self, negative_slope=0.01", activations.leaky_relu, ref.leaky_relu),
    op("aten.hardtanh", "self, min_val=-1, max_val=1", activations.hardtanh, ref.hardtanh),
    op("aten.softplus", "self, beta=1, threshold=20", activations.softplus, ref.softplus),
    op("aten.threshold", "self, threshold, value", activations.threshold_op, ref.threshold),
    op("aten.hardshrink", "self, lambd=0.5", activations.hardshrink, ref.hardshrink),
    op("aten.softshrink", "self, lambd=0.5", activations.softshrink, ref.softshrink),
    op("aten.celu", "self, alpha=1.0", activations.celu, ref.celu),
    op("aten.prelu", "self, weight", activations.prelu, ref.prelu),
    op("aten._prelu_kernel", "self, weight", activations.prelu_kernel, ref.prelu_kernel),
    op("aten.glu", "self, dim=-1", activations.glu, ref.glu),
)
