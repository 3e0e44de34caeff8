"""Integer expressions over sizes and loop variables, with Python's division and modulo.

``FloorDiv`` and ``Mod`` are defined here, because sympy's ``floor(a / b)`` uses rationals and
``sympy.Mod`` rewrites its argument in ways that lose the form of an index. Both follow Python:
rounding is towards minus infinity, and the remainder has the divisor's sign.
"""

from __future__ import annotations

import math
import operator
import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache, reduce
from typing import Any

import sympy

from scheduler.errors import UserError
from scheduler.ir.graph import Expr


@lru_cache(maxsize=65_536)  # names come from files
def symbol(name: str) -> sympy.Symbol:
    """Return the nonnegative integer symbol of that name (a size or a loop variable)."""
    return sympy.Symbol(name, integer=True, nonnegative=True)


_READ_FROM_DATA = re.compile(r"u\d+")


def is_unbacked(name: str) -> bool:
    """Whether a size is data-dependent by torch's naming: ``u0``. Its value is known only after its
    node has run."""
    return _READ_FROM_DATA.fullmatch(name) is not None


@lru_cache(maxsize=65_536)
def unbacked_sizes(expr: Expr) -> tuple[str, ...]:
    """Return the names of the data-dependent sizes in an expression, sorted."""
    if expr.is_Integer:
        return ()
    return tuple(sorted(s.name for s in expr.free_symbols if is_unbacked(s.name)))


def variable(name: str, number: int) -> sympy.Symbol:
    """Return the variable of a loop, or of an index read from memory. The dot in its name
    distinguishes it from all sizes of a model."""
    return symbol(f"{name}.{number}")


class FloorDiv(sympy.Function):  # type: ignore[misc]
    """``a // b`` by Python's rule."""

    nargs = (2,)
    is_integer = True

    @classmethod
    def eval(cls, a: Expr, b: Expr) -> Expr | None:
        if b == 1:
            return a
        if a == 0:
            return sympy.Integer(0)
        if a.is_Integer and b.is_Integer and b != 0:
            return sympy.Integer(int(a) // int(b))
        if a == b:
            return sympy.Integer(1)
        return None

    def _eval_is_nonnegative(self) -> bool | None:
        a, b = self.args
        return True if a.is_nonnegative and b.is_nonnegative else None


class Mod(sympy.Function):  # type: ignore[misc]
    """``a % b`` by Python's rule."""

    nargs = (2,)
    is_integer = True

    @classmethod
    def eval(cls, a: Expr, b: Expr) -> Expr | None:
        if b == 1 or a == 0:
            return sympy.Integer(0)
        if a.is_Integer and b.is_Integer and b != 0:
            return sympy.Integer(int(a) % int(b))
        if a == b:
            return sympy.Integer(0)
        return None

    def _eval_is_nonnegative(self) -> bool | None:
        return True if self.args[1].is_nonnegative else None


@lru_cache(maxsize=65_536)
def degrees(expr: Expr) -> Counter[str]:
    """Return an upper bound of the degree in each symbol: 2 in s0 for ``(s0 + 1)*s0*s1``."""
    if expr.is_Symbol:
        return Counter({expr.name: 1})
    parts = [degrees(part) for part in expr.args]
    if expr.is_Pow and expr.exp.is_Integer and expr.exp > 0:
        return Counter({name: n * int(expr.exp) for name, n in parts[0].items()})
    if expr.is_Mul:
        return sum(parts, Counter())
    return reduce(operator.or_, parts, Counter())


def as_expr(value: int | Expr) -> Expr:
    """Convert an int or an expression to an expression."""
    return sympy.Integer(value) if isinstance(value, int) else value


class DividedByZeroError(UserError, ZeroDivisionError):
    """An expression of the model divides by zero at the given sizes."""


def evaluate(expr: Expr | int, bindings: Mapping[str, int]) -> int:
    """Evaluate an expression at concrete sizes.

    Raises ``KeyError`` with the name of a symbol that has no binding, and ``DividedByZeroError``
    if the expression divides by zero.
    """
    if isinstance(expr, int):
        return expr
    if expr.is_Integer:
        return int(expr)
    if expr.is_Symbol:
        return bindings[expr.name]
    values = [evaluate(arg, bindings) for arg in expr.args]
    try:
        return int(apply(expr, values))
    except ZeroDivisionError:
        sizes = ", ".join(f"{s} = {bindings[s]}" for s in sorted(map(str, expr.free_symbols)))
        raise DividedByZeroError(
            f"division of a size by zero at {sizes or 'its fixed sizes'}"
        ) from None


def apply(expr: Expr, values: list[Any]) -> Any:
    """Apply the top-level function of ``expr`` to its arguments' values: ints, or integer arrays
    except for Max and Min."""
    if isinstance(expr, FloorDiv):
        return values[0] // values[1]
    if isinstance(expr, Mod):
        return values[0] % values[1]
    if isinstance(expr, sympy.Pow):
        return values[0] ** values[1]
    if isinstance(expr, sympy.Max):
        return max(values)
    if isinstance(expr, sympy.Min):
        return min(values)
    if isinstance(expr, sympy.Add):
        return sum(values)
    if isinstance(expr, sympy.Mul):
        return math.prod(values)
    raise TypeError(f"no integer rule for {type(expr).__name__}")
