"""Rows of elementary and special functions, and of rounding."""

from __future__ import annotations

from scheduler.ir.ops import op
from scheduler.ir.reference import pointwise as ref
from scheduler.ir.reference.constraints import positive
from scheduler.lowering import pointwise as rules
from scheduler.lowering.pointwise import identity_on_integers, unary

ROWS = (
    op("aten.exp", "self", unary("exp"), ref.float_unary("exp")),
    op("aten.exp2", "self", unary("exp2"), ref.float_unary("exp2")),
    op("aten.expm1", "self", unary("expm1"), ref.float_unary("expm1")),
    op("aten.log", "self", unary("log"), ref.float_unary("log"), requires=positive),
    op("aten.log2", "self", unary("log2"), ref.float_unary("log2"), requires=positive),
    op("aten.log10", "self", unary("log10"), ref.float_unary("log10"), requires=positive),
    op("aten.log1p", "self", unary("log1p"), ref.float_unary("log1p")),
    op("aten.sqrt", "self", unary("sqrt"), ref.float_unary("sqrt"), requires=positive),
    op("aten.rsqrt", "self", unary("rsqrt"), ref.float_unary("rsqrt"), requires=positive),
    op(
        "aten.reciprocal",
        "self",
        unary("reciprocal"),
        ref.float_unary("reciprocal"),
        requires=positive,
    ),
    op("aten.sin", "self", unary("sin"), ref.float_unary("sin")),
    op("aten.cos", "self", unary("cos"), ref.float_unary("cos")),
    op("aten.tan", "self", unary("tan"), ref.float_unary("tan")),
    op("aten.tanh", "self", unary("tanh"), ref.float_unary("tanh")),
    op("aten.sinh", "self", unary("sinh"), ref.float_unary("sinh")),
    op("aten.cosh", "self", unary("cosh"), ref.float_unary("cosh")),
    op("aten.asin", "self", unary("asin"), ref.float_unary("asin")),
    op("aten.acos", "self", unary("acos"), ref.float_unary("acos")),
    op("aten.atan", "self", unary("atan"), ref.float_unary("atan")),
    op("aten.asinh", "self", unary("asinh"), ref.float_unary("asinh")),
    op("aten.acosh", "self", unary("acosh"), ref.float_unary("acosh")),
    op("aten.atanh", "self", unary("atanh"), ref.float_unary("atanh")),
    op("aten.erf", "self", unary("erf"), ref.float_unary("erf")),
    op("aten.erfc", "self", unary("erfc"), ref.float_unary("erfc")),
    op("aten.erfinv", "self", unary("erfinv"), ref.float_unary("erfinv")),
    op("aten.sigmoid", "self", unary("sigmoid"), ref.float_unary("sigmoid")),
    op("aten.sign", "self", rules.sign, ref.sign),
    op("aten.floor", "self", identity_on_integers("floor"), ref.identity_on_integers("floor")),
    op("aten.ceil", "self", identity_on_integers("ceil"), ref.identity_on_integers("ceil")),
    op(
        "aten.round",
        "self; decimals: self, *, decimals",
        identity_on_integers("round"),
        ref.round_op,
    ),
    op("aten.special_round", "self, *, decimals=0", identity_on_integers("round"), ref.round_op),
    op("aten.trunc", "self", identity_on_integers("trunc"), ref.identity_on_integers("trunc")),
    op("aten.frac", "self", rules.frac, ref.frac),
)
