"""Guards: an export's assumptions on sizes besides their ranges, such as ``s0%4 == 0``.

torch makes decisions while tracing: that ``x.reshape(-1, 4)`` leaves no remainder, or which branch
of the model is taken. The graph is not valid at sizes that violate a guard.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from scheduler.errors import UserError
from scheduler.ir.graph import Expr, Guard, Relation, SymbolInfo
from scheduler.ir.index.facts import is_nonnegative
from scheduler.ir.index.functions import evaluate
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.index.text import parse_expr, print_expr

COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = MappingProxyType(
    {
        "==": operator.eq,
        "!=": operator.ne,
        "<=": operator.le,
        ">=": operator.ge,
        "<": operator.lt,
        ">": operator.gt,
    }
)
_SIGN = re.compile(r"\s*(==|!=|<=|>=|<|>)\s*")


def print_guard(guard: Guard) -> str:
    """Format in Python's syntax: ``s0%4 == 0 or s0 == 1``; ``parse_guard`` reads it back."""
    return " or ".join(
        f"{print_expr(relation.left)} {relation.sign} {print_expr(relation.right)}"
        for relation in guard.alternatives
    )


def parse_guard(text: str) -> Guard:
    """The guard that ``print_guard`` wrote. Raises ``UserError`` for any other text."""
    relations = []
    for part in text.split(" or "):
        pieces = _SIGN.split(part)
        if len(pieces) != 3:
            raise UserError(f"not a comparison of two sizes: {part[:60]!r}")
        relations.append(Relation(parse_expr(pieces[0]), pieces[1], parse_expr(pieces[2])))
    return Guard(tuple(relations))


def guard_sizes(guard: Guard) -> tuple[str, ...]:
    """Return the names of a guard's sizes, sorted."""
    exprs = [e for relation in guard.alternatives for e in (relation.left, relation.right)]
    return tuple(sorted({symbol.name for expr in exprs for symbol in expr.free_symbols}))


def guard_holds(guard: Guard, bindings: Mapping[str, int]) -> bool:
    """Whether a guard holds at these sizes; False if it divides by zero."""
    try:
        return any(
            COMPARISONS[relation.sign](
                evaluate(relation.left, bindings), evaluate(relation.right, bindings)
            )
            for relation in guard.alternatives
        )
    except ZeroDivisionError:
        return False


def check_guards(guards: Iterable[Guard], bindings: Mapping[str, int]) -> None:
    """Raise ``UserError`` if sizes violate a guard; guards with unknown sizes are skipped."""
    for guard in guards:
        names = guard_sizes(guard)
        if all(name in bindings for name in names) and not guard_holds(guard, bindings):
            sizes = ", ".join(f"{name}={bindings[name]}" for name in names)
            raise UserError(f"{sizes}: the model was exported for {print_guard(guard)}")


def is_implied(guard: Guard, symbols: Mapping[str, SymbolInfo]) -> bool:
    """Whether a guard provably holds at all sizes in the ranges."""
    ranges = Ranges.from_symbols(symbols)
    return any(_is_proven(relation, ranges) for relation in guard.alternatives)


def _is_proven(relation: Relation, ranges: Ranges) -> bool:
    left, right = relation.left, relation.right
    match relation.sign:
        case "==":
            return _at_least(left, right, 0, ranges) and _at_least(right, left, 0, ranges)
        case "!=":
            return _at_least(left, right, 1, ranges) or _at_least(right, left, 1, ranges)
        case "<=":
            return _at_least(right, left, 0, ranges)
        case ">=":
            return _at_least(left, right, 0, ranges)
        case "<":
            return _at_least(right, left, 1, ranges)
    return _at_least(left, right, 1, ranges)


def _at_least(a: Expr, b: Expr, by: int, ranges: Ranges) -> bool:
    return is_nonnegative(a - b - by, ranges)
