"""Rows of activation functions."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.ir.ops import Op, op
from scheduler.ir.reference import activations as ref
from scheduler.ir.reference.rule import Rule
from scheduler.ir.values import Value
from scheduler.lowering import activations as rules
from scheduler.lowering.pointwise import formula_rule


def formula_op(name: str, parameters: str, formula: Callable[..., Value], reference: Rule) -> Op:
    """The row of a formula of elements: ``formula_rule``."""
    return op(f"aten.{name}", parameters, formula_rule(formula, parameters), reference)


ROWS = (
    formula_op("logaddexp", "self, other", rules.logaddexp, ref.logaddexp),
    formula_op("relu", "self", rules.relu, ref.relu),
    formula_op("relu6", "self", rules.relu6, ref.relu6),
    formula_op("silu", "self", rules.silu, ref.silu),
    formula_op("hardswish", "self", rules.hard_swish, ref.hardswish),
    formula_op("hardsigmoid", "self", rules.hard_sigmoid, ref.hardsigmoid),
    formula_op("mish", "self", rules.mish, ref.mish),
    formula_op("log_sigmoid", "self", rules.log_sigmoid, ref.log_sigmoid),
    formula_op("selu", "self", rules.selu, ref.selu),
    formula_op("gelu", "self, *, approximate='none'", rules.gelu, ref.gelu),
    formula_op("elu", "self, alpha=1, scale=1, input_scale=1", rules.elu, ref.elu),
    formula_op("leaky_relu", "self, negative_slope=0.01", rules.leaky_relu, ref.leaky_relu),
    formula_op("hardtanh", "self, min_val=-1, max_val=1", rules.hardtanh, ref.hardtanh),
    formula_op("softplus", "self, beta=1, threshold=20", rules.softplus, ref.softplus),
    formula_op("threshold", "self, threshold, value", rules.threshold_or_value, ref.threshold),
    formula_op("hardshrink", "self, lambd=0.5", rules.hardshrink, ref.hardshrink),
    formula_op("softshrink", "self, lambd=0.5", rules.softshrink, ref.softshrink),
    formula_op("celu", "self, alpha=1.0", rules.celu, ref.celu),
    formula_op("_prelu_kernel", "self, weight", rules.prelu_kernel, ref.prelu_kernel),
    op("aten.prelu", "self, weight", rules.prelu, ref.prelu),
    op("aten.glu", "self, dim=-1", rules.glu, ref.glu),
)
