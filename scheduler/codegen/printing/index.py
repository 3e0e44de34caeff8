"""Print integer expressions, in any kernel language.

Division and modulo follow Python's rules. If both sides are known to be non-negative, a language
may use a cheaper form.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.facts import is_nonnegative
from scheduler.ir.index.functions import FloorDiv, Mod
from scheduler.ir.index.ranges import ANY_SIZES, Ranges
from scheduler.text import to_identifier

SUM, PRODUCT, ATOM = 1, 2, 3
"""Precedence of a text: an atom never needs parentheses."""


class IndexPrinter(ABC):
    """Prints many expressions of one kernel, each only once.

    ``ranges`` tell where a division needs no helper. ``names`` overrides the text of a symbol, and
    must do so for every size that a model may name freely; a variable is printed without its dot.
    With ``wide`` every symbol is treated as 64 bits, for callers whose variables are narrower.
    """

    language: ClassVar[str]
    """Name of the language in errors."""

    division: ClassVar[str] = "/"
    """The operator that divides non-negative operands."""

    wide_symbol: ClassVar[str] = "int64_t({})"
    """The form of a symbol as 64 bits."""

    def __init__(
        self,
        *,
        wide: bool = False,
        ranges: Ranges = ANY_SIZES,
        names: Mapping[str, str] | None = None,
    ) -> None:
        self._wide = wide
        self._ranges = ranges
        self._names = names or {}
        self._printed: dict[Expr, tuple[str, int]] = {}

    def __call__(self, expr: Expr | int) -> str:
        """Return the text of ``expr``; raises ``TypeError`` if it is not an integer expression."""
        return self._print(sympy.Integer(expr) if isinstance(expr, int) else expr)[0]

    def atom(self, expr: Expr | int) -> str:
        """Return the text of ``expr``, in parentheses unless it is a name or a number."""
        return self._parenthesize(sympy.Integer(expr) if isinstance(expr, int) else expr, ATOM)

    def _parenthesize(self, expr: Expr, min_precedence: int) -> str:
        text, precedence = self._print(expr)
        return text if precedence >= min_precedence else f"({text})"

    def _print(self, expr: Expr) -> tuple[str, int]:
        text_and_precedence = self._printed.get(expr)
        if text_and_precedence is None:
            text_and_precedence = self._printed[expr] = self._render(expr)
        return text_and_precedence

    def _render(self, expr: Expr) -> tuple[str, int]:
        if expr.is_Integer:
            return self._integer(int(expr)), ATOM if expr >= 0 else SUM
        if expr.is_Symbol:
            name = self._names.get(expr.name) or to_identifier(expr.name.replace(".", ""))
            return self.wide_symbol.format(name) if self._wide else name, ATOM
        if isinstance(expr, sympy.Add):
            return self._sum(expr), SUM
        if isinstance(expr, sympy.Mul):
            return self._product(expr)
        if isinstance(expr, FloorDiv | Mod):
            return self._division(expr)
        if isinstance(expr, sympy.Max | sympy.Min):
            text, *other_texts = sorted(self(arg) for arg in expr.args)
            for other_text in other_texts:
                text = self._binary_min_max(expr, text, other_text)
            return text, ATOM
        if isinstance(expr, sympy.Pow) and expr.exp.is_Integer and int(expr.exp) > 0:
            return " * ".join([self._parenthesize(expr.base, ATOM)] * int(expr.exp)), PRODUCT
        raise TypeError(
            f"{type(expr).__name__} is not supported in an index in {self.language}: {expr}"
        )

    def _sum(self, expr: Expr) -> str:
        # Conventional order: `x * 4 + y - 1` rather than `-1 + y + 4 * x`.
        def order(term: Expr) -> tuple[bool, bool, bool]:
            return _is_negative(term), bool(term.is_Integer), not isinstance(term, sympy.Mul)

        terms = sorted(expr.args, key=order)
        text = self._parenthesize(terms[0], PRODUCT)
        for term in terms[1:]:
            if _is_negative(term):
                text += f" - {self._parenthesize(-term, PRODUCT)}"
            else:
                text += f" + {self._parenthesize(term, PRODUCT)}"
        return text

    def _product(self, expr: Expr) -> tuple[str, int]:
        coefficient, factors = expr.as_coeff_mul()
        if not coefficient.is_Integer:
            raise TypeError(f"a fraction is not supported in an index in {self.language}: {expr}")
        factor_texts = [self._parenthesize(factor, ATOM) for factor in factors]
        if coefficient == -1:
            return "-" + " * ".join(factor_texts), SUM
        if coefficient != 1:
            factor_texts.append(self._parenthesize(coefficient, ATOM))
        return " * ".join(factor_texts), PRODUCT

    def _division(self, expr: Expr) -> tuple[str, int]:
        a, b = expr.args
        if is_nonnegative(a, self._ranges) and is_nonnegative(b, self._ranges):
            # Deliberately one level below an atom: a * (b / c) must keep its parentheses.
            operator = self.division if isinstance(expr, FloorDiv) else "%"
            text = f"{self._parenthesize(a, ATOM)} {operator} {self._parenthesize(b, ATOM)}"
            return text, PRODUCT
        return self._floor_division(expr, self(a), self(b)), ATOM

    # -- defined by each language ----------------------------------------------------------------

    def _integer(self, value: int) -> str:
        """Return the text of a number."""
        return str(value)

    @abstractmethod
    def _floor_division(self, expr: Expr, a: str, b: str) -> str:
        """Return an atom: a ``FloorDiv`` or ``Mod`` of any signs, from its operands' texts."""

    @abstractmethod
    def _binary_min_max(self, expr: Expr, a: str, b: str) -> str:
        """Return an atom: the ``Max`` or ``Min`` of two operands, from their texts."""


def _is_negative(term: Expr) -> bool:
    return bool(term.could_extract_minus_sign())
