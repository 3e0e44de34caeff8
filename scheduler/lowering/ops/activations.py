"""Rows of activation functions."""

from __future__ import annotations

from scheduler.ir.ops import op
from scheduler.ir.reference import activations as ref
from scheduler.lowering import activations as rules
from scheduler.lowering.pointwise import unary_function

ROWS = (
    op("aten.logaddexp", "self, other", rules.logaddexp, ref.logaddexp),
    op("aten.relu", "self", unary_function(rules.relu), ref.relu),
    op("aten.relu6", "self", unary_function(rules.relu6), ref.relu6),
    op("aten.silu", "self", unary_function(rules.silu), ref.silu),
    op("aten.hardswish", "self", unary_function(rules.hard_swish), ref.hardswish),
    op("aten.hardsigmoid", "self", unary_function(rules.hard_sigmoid), ref.hardsigmoid),
    op("aten.mish", "self", unary_function(rules.mish), ref.mish),
    op("aten.log_sigmoid", "self", unary_function(rules.log_sigmoid), ref.log_sigmoid),
    op("aten.selu", "self", unary_function(rules.selu), ref.selu),
    op("aten.gelu", "self, *, approximate='none'", rules.gelu_op, ref.gelu),
    op("aten.elu", "self, alpha=1, scale=1, input_scale=1", rules.elu, ref.elu),
    op("aten.leaky_relu", "self, negative_slope=0.01", rules.leaky_relu, ref.leaky_relu),
    op("aten.hardtanh", "self, min_val=-1, max_val=1", rules.hardtanh, ref.hardtanh),
    op("aten.softplus", "self, beta=1, threshold=20", rules.softplus, ref.softplus),
    op("aten.threshold", "self, threshold, value", rules.threshold_op, ref.threshold),
    op("aten.hardshrink", "self, lambd=0.5", rules.hardshrink, ref.hardshrink),
    op("aten.softshrink", "self, lambd=0.5", rules.softshrink, ref.softshrink),
    op("aten.celu", "self, alpha=1.0", rules.celu, ref.celu),
    op("aten.prelu", "self, weight", rules.prelu, ref.prelu),
    op("aten._prelu_kernel", "self, weight", rules.prelu_kernel, ref.prelu_kernel),
    op("aten.glu", "self, dim=-1", rules.glu, ref.glu),
)
