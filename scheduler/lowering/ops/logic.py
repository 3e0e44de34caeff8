"""Rows of comparisons, tests, logic and bits."""

from __future__ import annotations

from scheduler.ir.ops import op
from scheduler.ir.reference import pointwise as ref
from scheduler.lowering import pointwise as rules
from scheduler.lowering.pointwise import bitwise, comparison_rule, float_test, logical

ROWS = (
    op("aten.isnan", "self", float_test("isnan"), ref.unary("isnan")),
    op("aten.isinf", "self", float_test("isinf"), ref.unary("isinf")),
    op("aten.isfinite", "self", float_test("isfinite"), ref.unary("isfinite")),
    op("aten.logical_not", "self", rules.logical_not, ref.logical_not),
    op("aten.bitwise_not", "self", bitwise("not"), ref.unary("bitwise_not")),
    op("aten.eq", "Tensor Scalar: self, other", comparison_rule("eq"), ref.binary("eq")),
    op("aten.ne", "Tensor Scalar: self, other", comparison_rule("ne"), ref.binary("ne")),
    op("aten.lt", "Tensor Scalar: self, other", comparison_rule("lt"), ref.binary("lt")),
    op("aten.le", "Tensor Scalar: self, other", comparison_rule("le"), ref.binary("le")),
    op("aten.gt", "Tensor Scalar: self, other", comparison_rule("gt"), ref.binary("gt")),
    op("aten.ge", "Tensor Scalar: self, other", comparison_rule("ge"), ref.binary("ge")),
    op("aten.logical_and", "self, other", logical("logical_and"), ref.logical("logical_and")),
    op("aten.logical_or", "self, other", logical("logical_or"), ref.logical("logical_or")),
    op("aten.logical_xor", "self, other", logical("logical_xor"), ref.logical("logical_xor")),
    op(
        "aten.bitwise_and",
        "Tensor Scalar Scalar_Tensor: self, other",
        bitwise("and"),
        ref.binary("bitwise_and"),
    ),
    op(
        "aten.bitwise_or",
        "Tensor Scalar Scalar_Tensor: self, other",
        bitwise("or"),
        ref.binary("bitwise_or"),
    ),
    op(
        "aten.bitwise_xor",
        "Tensor Scalar Scalar_Tensor: self, other",
        bitwise("xor"),
        ref.binary("bitwise_xor"),
    ),
    op("aten.__and__", "Tensor Scalar: self, other", bitwise("and"), ref.binary("bitwise_and")),
    op("aten.__or__", "Tensor Scalar: self, other", bitwise("or"), ref.binary("bitwise_or")),
    op("aten.__xor__", "Tensor Scalar: self, other", bitwise("xor"), ref.binary("bitwise_xor")),
    op(
        "aten.where",
        "self ScalarOther ScalarSelf Scalar: condition, self, other; default: condition",
        rules.where,
        ref.where,
    ),
    op("aten.masked_fill", "Scalar Tensor: self, mask, value", rules.masked_fill, ref.masked_fill),
    op("aten.lerp", "Scalar Tensor: self, end, weight", rules.lerp, ref.lerp),
)
