"""The pointwise functions of ``ir/pointwise.py`` as C++ expressions."""

from __future__ import annotations

from scheduler.ir.dtypes import DType
from scheduler.ir.pointwise import FUNCTIONS
from scheduler.ir.values import Call


def call_text(call: Call, args: list[tuple[str, DType]]) -> str:
    """The expression of a call; ``args`` are names or literals with their types.

    Raises ``KeyError`` for an op that the table of pointwise functions does not have.
    """
    function = FUNCTIONS[call.op]
    texts = [text for text, _ in args]
    if not function.operator:
        return f"kiln::{function.name}({', '.join(_typed(text, dtype) for text, dtype in args)})"
    if function.arity == 1:
        return f"{function.operator}{_in_parentheses(texts[0])}"
    if function.arity == 2:
        return f"{texts[0]} {function.operator} {texts[1]}"
    return f"{texts[0]} ? {texts[1]} : {texts[2]}"


def _typed(text: str, dtype: DType) -> str:
    """An argument in its own type: a literal of a narrow integer is an int in C++, and a template
    of one type for all arguments would not fit."""
    if text.isidentifier() or dtype.is_inexact or dtype is DType.BOOL or dtype.itemsize >= 4:
        return text
    return f"static_cast<{dtype.cpp}>({text})"


def _in_parentheses(text: str) -> str:
    """Where a sign would meet another."""
    return f"({text})" if text.startswith("-") else text
