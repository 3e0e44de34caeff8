"""Infer the example value of each symbol from example values of expressions over symbols."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import evaluate


def infer_hints(hints: Mapping[Expr, int]) -> dict[str, int]:
    """Value by symbol name: stated in the file, or solved from an expression linear in the symbol.

    A symbol that no expression determines is not in the result.
    """
    values = {expr.name: hint for expr, hint in hints.items() if expr.is_Symbol}
    for expr, hint in hints.items():
        unknown = [symbol.name for symbol in expr.free_symbols if symbol.name not in values]
        if len(unknown) == 1:
            solved = _solve(expr, hint, unknown[0], values)
            if solved is not None:
                values[unknown[0]] = solved
    return values


def _solve(expr: Expr, hint: int, name: str, values: Mapping[str, int]) -> int | None:
    """Solve for the value at which the expression is ``hint``, assuming it is linear; the solution
    is then checked."""
    try:
        at_0, at_1 = (evaluate(expr, {**values, name: value}) for value in (0, 1))
        if at_1 == at_0:
            return None
        value = (hint - at_0) // (at_1 - at_0)
        return value if evaluate(expr, {**values, name: value}) == hint else None
    except (TypeError, ZeroDivisionError):
        return None
