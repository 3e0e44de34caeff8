"""The pointwise functions of ``ir/pointwise.py`` as C++ expressions."""

from __future__ import annotations

from scheduler.ir.dtypes import DType
from scheduler.ir.pointwise import FUNCTIONS
from scheduler.ir.values import Call, Const, Value


def call_text(call: Call, args: list[tuple[str, DType]]) -> str:
    """Return the expression of a call; ``args`` are names or literals with their types.

    Raises ``KeyError`` for an op that is not in the table of pointwise functions.
    """
    function = FUNCTIONS[call.op]
    texts = [text for text, _ in args]
    name = "" if function.operator else function.name
    if args[0][1].is_integer or _subtracts_product(call):
        name = _OPERATOR_FUNCTIONS.get(call.op, name)
    if name:
        return f"kiln::{name}({', '.join(_cast_narrow(text, dtype) for text, dtype in args)})"
    if function.arity == 1:
        # A sign of the argument would follow another sign.
        argument = f"({texts[0]})" if texts[0].startswith("-") else texts[0]
        return f"{function.operator}{argument}"
    if function.arity == 2:
        return f"{texts[0]} {function.operator} {texts[1]}"
    return f"{texts[0]} ? {texts[1]} : {texts[2]}"


def _subtracts_product(call: Call) -> bool:
    """Whether it is a difference of a product of floats and what may be the maximum of such
    products: a compiler would leave that product unrounded."""
    if call.op != "sub" or not call.dtype.is_float:
        return False
    products = [a for a in call.args if isinstance(a, Call) and a.op in ("mul", "truediv", "neg")]
    return bool(products) and not any(isinstance(arg, Const) for arg in call.args)


# Operators as functions of ``kiln/arithmetic.h``: integer overflow wraps around, and products of
# floats are rounded before a subtraction.
_OPERATOR_FUNCTIONS = {"add": "plus", "sub": "minus", "mul": "times", "neg": "negated"}


def fast_form(call: Call) -> tuple[str, tuple[Value, ...]] | None:
    """Return the ``kiln/fast.h`` function that computes an f32 call, and its arguments; None if
    nothing there is faster."""
    if call.op == "add":
        for constant, function in (call.args, call.args[::-1]):
            if not isinstance(function, Call) or function.op not in ("erf", "tanh"):
                continue
            if isinstance(constant, Const) and constant.value == 1:
                return f"one_plus_{function.op}", function.args
        return None
    name = _FAST_FUNCTIONS.get(call.op)
    return None if name is None else (name, call.args)


# By the name of the pointwise function.
_FAST_FUNCTIONS = {
    name: name
    for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sigmoid", "tanh", "erf")
} | {"reciprocal": "reciprocal", "truediv": "divide", "sqrt": "sqrt", "rsqrt": "rsqrt"}


def _cast_narrow(text: str, dtype: DType) -> str:
    """Cast an argument to its own type: a literal of a narrow integer is an int in C++, and would
    not match a template with one type for all arguments."""
    if text.isidentifier() or dtype.is_inexact or dtype is DType.BOOL or dtype.itemsize >= 4:
        return text
    return f"static_cast<{dtype.cpp}>({text})"
