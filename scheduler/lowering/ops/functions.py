"""Rows of the elementary and special functions, and of rounding."""

from __future__ import annotations

from scheduler.ir.ops import op
from scheduler.ir.reference import pointwise as ref
from scheduler.ir.reference.roles import positive
from scheduler.lowering import pointwise
from scheduler.lowering.pointwise import identity_on_integers, unary

ROWS = (
    op("aten.exp", "self", unary("exp"), ref.floats("exp")),
    op("aten.exp2", "self", unary("exp2"), ref.floats("exp2")),
    op("aten.expm1", "self", unary("expm1"), ref.floats("expm1")),
    op("aten.log", "self", unary("log"), ref.floats("log"), requires=positive),
    op("aten.log2", "self", unary("log2"), ref.floats("log2"), requires=positive),
    op("aten.log10", "self", unary("log10"), ref.floats("log10"), requires=positive),
    op("aten.log1p", "self", unary("log1p"), ref.floats("log1p")),
    op("aten.sqrt", "self", unary("sqrt"), ref.floats("sqrt"), requires=positive),
    op("aten.rsqrt", "self", unary("rsqrt"), ref.floats("rsqrt"), requires=positive),
    op("aten.reciprocal", "self", unary("reciprocal"), ref.floats("reciprocal"), requires=positive),
    op("aten.sin", "self", unary("sin"), ref.floats("sin")),
    op("aten.cos", "self", unary("cos"), ref.floats("cos")),
    op("aten.tan", "self", unary("tan"), ref.floats("tan")),
    op("aten.tanh", "self", unary("tanh"), ref.floats("tanh")),
    op("aten.sinh", "self", unary("sinh"), ref.floats("sinh")),
    op("aten.cosh", "self", unary("cosh"), ref.floats("cosh")),
    op("aten.asin", "self", unary("asin"), ref.floats("asin")),
    op("aten.acos", "self", unary("acos"), ref.floats("acos")),
    op("aten.atan", "self", unary("atan"), ref.floats("atan")),
    op("aten.asinh", "self", unary("asinh"), ref.floats("asinh")),
    op("aten.acosh", "self", unary("acosh"), ref.floats("acosh")),
    op("aten.atanh", "self", unary("atanh"), ref.floats("atanh")),
    op("aten.erf", "self", unary("erf"), ref.floats("erf")),
    op("aten.erfc", "self", unary("erfc"), ref.floats("erfc")),
    op("aten.erfinv", "self", unary("erfinv"), ref.floats("erfinv")),
    op("aten.sigmoid", "self", unary("sigmoid"), ref.floats("sigmoid")),
    op("aten.sign", "self", pointwise.sign, ref.sign),
    op("aten.floor", "self", identity_on_integers("floor"), ref.rounding("floor")),
    op("aten.ceil", "self", identity_on_integers("ceil"), ref.rounding("ceil")),
    op(
        "aten.round",
        "self; decimals: self, *, decimals",
        identity_on_integers("round"),
        ref.round_op,
    ),
    op(
        "aten.special_round",
        "self, *, decimals=0",
        identity_on_integers("round"),
        ref.round_op,
    ),
    op("aten.trunc", "self", identity_on_integers("trunc"), ref.rounding("trunc")),
    op("aten.frac", "self", pointwise.frac, ref.frac),
)
