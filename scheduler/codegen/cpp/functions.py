"""The pointwise functions of ``ir/pointwise.py`` as C++ expressions.

Operators are written as such; everything else is a function of the same name in namespace
``kiln`` (``kiln/math.h`` and ``kiln/pointwise.h``).
"""

from __future__ import annotations

from scheduler.ir.dtypes import DType
from scheduler.ir.pointwise import FUNCTIONS
from scheduler.ir.values import Call

_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "logical_and": "&&",
    "logical_or": "||",
    "logical_xor": "!=",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "lshift": "<<",
    "rshift": ">>",
}
_PREFIX = {"neg": "-", "logical_not": "!"}


def call_text(call: Call, args: list[tuple[str, DType]]) -> str:
    """The expression of a call; ``args`` are names or literals with their types.

    Raises ``KeyError`` for an op that the table of pointwise functions does not have.
    """
    texts = [text for text, _ in args]
    if call.op in _INFIX:
        return f"{texts[0]} {_INFIX[call.op]} {texts[1]}"
    if call.op in _PREFIX:
        return f"{_PREFIX[call.op]}{_apart(texts[0])}"
    if call.op == "where":
        return f"{texts[0]} ? {texts[1]} : {texts[2]}"
    if call.op == "bitwise_not":
        return f"!{_apart(texts[0])}" if args[0][1] is DType.BOOL else f"~{_apart(texts[0])}"
    typed = ", ".join(_typed(text, dtype) for text, dtype in args)
    return f"kiln::{FUNCTIONS[call.op].name}({typed})"


def _typed(text: str, dtype: DType) -> str:
    """An argument in its own type: a literal of a narrow integer is an int in C++, and a template
    of one type for all arguments would not fit."""
    if text.isidentifier() or dtype.is_float or dtype is DType.BOOL or dtype.itemsize >= 4:
        return text
    return f"static_cast<{dtype.cpp}>({text})"


def _apart(text: str) -> str:
    """In parentheses where a sign would meet another."""
    return f"({text})" if text.startswith("-") else text
