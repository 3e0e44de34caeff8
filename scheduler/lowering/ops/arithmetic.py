"""Rows of arithmetic on numbers."""

from __future__ import annotations

from scheduler.ir.ops import op
from scheduler.ir.reference import pointwise as ref
from scheduler.ir.reference.constraints import divisor
from scheduler.lowering import pointwise as rules
from scheduler.lowering.pointwise import binary, fused_multiply, scaled_binary, unary

ROWS = (
    op("aten.mul", "Tensor Scalar: self, other", rules.mul, ref.binary("mul")),
    op(
        "aten.div",
        "Tensor Scalar: self, other; Tensor_mode Scalar_mode: self, other, *, rounding_mode",
        rules.div,
        ref.div,
        requires=divisor,
    ),
    op("aten.true_divide", "Tensor Scalar: self, other", rules.div, ref.binary("truediv")),
    op(
        "aten.add",
        "Tensor: self, other, *, alpha=1; Scalar: self, other, alpha=1",
        scaled_binary("add"),
        ref.add,
    ),
    op(
        "aten.sub",
        "Tensor: self, other, *, alpha=1; Scalar: self, other, alpha=1",
        scaled_binary("sub"),
        ref.sub,
    ),
    op(
        "aten.rsub",
        "Tensor: self, other, *, alpha=1; Scalar: self, other, alpha=1",
        scaled_binary("sub", reverse=True),
        ref.rsub,
    ),
    op(
        "aten.floor_divide",
        "default Scalar: self, other",
        binary("floordiv"),
        ref.binary("floordiv"),
        requires=divisor,
    ),
    op(
        "aten.remainder",
        "Tensor Scalar Scalar_Tensor: self, other",
        binary("remainder"),
        ref.binary("remainder"),
        requires=divisor,
    ),
    op(
        "aten.fmod",
        "Tensor Scalar: self, other",
        binary("fmod"),
        ref.binary("fmod"),
        requires=divisor,
    ),
    op(
        "aten.atan2",
        "self, other; out: self, other, *, out",
        binary("atan2"),
        ref.float_binary("atan2"),
    ),
    op("aten.hypot", "self, other", binary("hypot"), ref.binary("hypot")),
    op("aten.copysign", "Tensor Scalar: self, other", binary("copysign"), ref.binary("copysign")),
    op("aten.maximum", "self, other", rules.maximum_or_minimum("maximum"), ref.binary("maximum")),
    op("aten.minimum", "self, other", rules.maximum_or_minimum("minimum"), ref.binary("minimum")),
    op("aten.pow", "Tensor_Tensor Tensor_Scalar Scalar: self, exponent", rules.pow_op, ref.power),
    op("aten.neg", "self", unary("neg"), ref.unary("neg")),
    op("aten.square", "self", rules.square, ref.square),
    op("aten.clamp", "default Tensor: self, min=None, max=None", rules.clamp, ref.clamp),
    op("aten.clip", "default Tensor: self, min=None, max=None", rules.clamp, ref.clamp),
    op("aten.clamp_min", "default Tensor: self, min", rules.clamp_min, ref.clamp),
    op("aten.clamp_max", "default Tensor: self, max", rules.clamp_max, ref.clamp),
    op(
        "aten.nan_to_num",
        "self, nan=None, posinf=None, neginf=None",
        rules.nan_to_num,
        ref.nan_to_num,
    ),
    op("aten.addcmul", "self, tensor1, tensor2, *, value=1", fused_multiply("mul"), ref.addcmul),
    op(
        "aten.addcdiv", "self, tensor1, tensor2, *, value=1", fused_multiply("truediv"), ref.addcdiv
    ),
)
