"""The pointwise functions of ``ir/pointwise.py`` as CuteDSL expressions.

A function that is neither an operator nor in ``cute.math`` is one of ours (``device_functions``),
which the source contains beside its kernels. ``cute.math`` without ``fastmath`` uses libdevice's
functions, accurate to one or two units in the last place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from scheduler.ir.dtypes import DType
from scheduler.ir.pointwise import FUNCTIONS
from scheduler.ir.values import Call

_OPERATORS: Mapping[str, str] = {
    **{
        name: f"{{}} {function.operator} {{}}"
        for name, function in FUNCTIONS.items()
        if function.operator and function.arity == 2
    },
    "neg": "-{}",
    "logical_and": "{} & {}",
    "logical_or": "{} | {}",
    "logical_xor": "{} ^ {}",
    "logical_not": "~{}",
    "bitwise_not": "~{}",
    "where": "select({}, {}, {})",
    "reciprocal": "1 / {}",
}
_FLOAT_FUNCTIONS: Mapping[str, str] = {
    **{
        name: f"cute.math.{name}({{}})"
        for name in (
            *("abs", "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p"),
            *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"),
            *("asinh", "acosh", "atanh", "erf", "erfc", "floor", "ceil", "trunc"),
        )
    },
    "round": "cute.math.roundeven({})",
    "pow": "cute.math.pow({}, {})",
    "atan2": "cute.math.atan2({}, {})",
    "copysign": "with_sign({}, {})",
    "fmod": "{} % {}",
    "truncdiv": "cute.math.trunc({} / {})",
    "rsqrt": "reciprocal_root({})",
    "hypot": "hypotenuse({}, {})",
    "sigmoid": "sigmoid({})",
    "isnan": "{0} != {0}",
    "isinf": 'cute.math.abs({0}) == float("inf")',
    "isfinite": 'cute.math.abs({0}) < float("inf")',
    "maximum": "maximum({}, {})",
    "minimum": "minimum({}, {})",
    "floordiv": "floor_quotient({}, {})",
    "remainder": "floor_remainder({}, {})",
    "sign": "sign({})",
}
_INTEGER_FUNCTIONS: Mapping[str, str] = {
    "abs": "select({0} < 0, -{0}, {0})",
    "maximum": "select({0} > {1}, {0}, {1})",
    "minimum": "select({0} < {1}, {0}, {1})",
    # Division by 0 as in kiln/pointwise.h: all bits set, and the remainder is the dividend.
    "fmod": "select({1} == 0, {0}, {0} % {1})",
    "truncdiv": "select({1} == 0, ~{1}, ({0} - {0} % {1}) // {1})",
    "floordiv": "select({1} == 0, ~{1}, {0} // {1})",
    "remainder": "select({1} == 0, {0}, floor_remainder({0}, {1}))",
    "pow": "integer_power({}, {})",
    "sign": "sign({})",
}
_CONSTANT = re.compile(r"cutlass\.\w+\([^()]*(\(\"\w+\"\))?\)")


def expression_form(call: Call) -> str | None:
    """Return the form of a call's expression; None if CuteDSL has no equivalent."""
    dtype = call.args[-1].dtype
    by_type = _FLOAT_FUNCTIONS if dtype.is_float else _INTEGER_FUNCTIONS
    return by_type.get(call.op) or _OPERATORS.get(call.op)


def call_text(call: Call, args: list[tuple[str, DType]]) -> str:
    """Return the expression of a call; ``args`` are names or literals with their types.

    Raises ``KeyError`` for an op without an equivalent in CuteDSL.
    """
    form = expression_form(call)
    if form is None:
        raise KeyError(call.op)
    texts = [text for text, _ in args]
    if all(_CONSTANT.fullmatch(text) for text in texts):
        texts[0] = force_dynamic(texts[0])
    return form.format(*texts)


def force_dynamic(text: str) -> str:
    """Return ``text`` as a run-time value of the kernel. With constants alone Python would compute
    while the kernel is traced, by its own rules, and round nothing."""
    return f"dynamic({text})" if _CONSTANT.fullmatch(text) else text
