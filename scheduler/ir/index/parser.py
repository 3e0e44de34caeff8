"""The base parser of expressions in untrusted text.

Texts have Python's syntax: they are parsed with ``ast`` and read with a short list of allowed
nodes, never evaluated, within the limits of ``scheduler/limits.py``.
"""

from __future__ import annotations

import ast
import unicodedata
from abc import ABC, abstractmethod

import sympy

from scheduler.errors import UserError
from scheduler.fuel import spend_fuel
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv, Mod
from scheduler.ir.index.polynomial import TooLargeError, check_bounded, degree
from scheduler.limits import (
    MAX_BITS,
    MAX_BRANCHES,
    MAX_DEGREE,
    MAX_EXPONENT,
    MAX_EXPRESSION_DEPTH,
    MAX_EXPRESSION_TEXT,
    MAX_EXPRESSION_TOKENS,
    MAX_SYMBOL_NAME,
)

_NODE_FUEL = 20  # steps of building a node of an expression
FUNCTIONS = frozenset({"Max", "Min", "FloorDiv", "Mod"})


class NotAnIntegerError(UserError):
    """A text is not an integer expression."""


class ExpressionParser(ABC):
    """Reads one text; a subclass defines the value of each node of the syntax tree."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._parts = 0

    def parse(self) -> Expr:
        """Parse the text. Raises ``UserError`` if it is not an expression or exceeds the limits."""
        if len(self._text) > MAX_EXPRESSION_TEXT:
            size = len(self._text)
            raise UserError(f"expression of {size} characters; the limit is {MAX_EXPRESSION_TEXT}")
        try:
            tree = ast.parse(self.source(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise self.syntax_error() from error
        expr = self.read(tree, 0)
        try:
            check_bounded(expr)
        except TooLargeError as error:
            raise UserError(f"{error}: {quote_text(self._text)}") from error
        return expr

    def source(self) -> str:
        """Return the text in the form that Python's parser accepts."""
        return self._text.strip()

    def read(self, node: ast.expr, depth: int) -> Expr:
        """Return the expression at ``node``, which is ``depth`` nodes below the top."""
        self.count(depth)
        value = self.value(node, depth + 1)
        if value.is_Integer and int(value).bit_length() > MAX_BITS:
            text = quote_text(self._text)
            raise UserError(f"number of more than {MAX_BITS} bits in expression {text}")
        return value

    def count(self, depth: int) -> None:
        """Count a node, ``depth`` nodes below the top. Raises ``UserError`` beyond the limits."""
        self._parts += 1
        spend_fuel(_NODE_FUEL)
        if self._parts > MAX_EXPRESSION_TOKENS or depth > MAX_EXPRESSION_DEPTH:
            raise UserError(f"expression too large: {quote_text(self._text)}")

    @abstractmethod
    def value(self, node: ast.expr, depth: int) -> Expr:
        """Return the value of ``node``; its parts are read at ``depth``."""

    def call(self, name: str, args: list[Expr]) -> Expr:
        """Return the call of a function with expressions."""
        match name, args:
            case "Pow", [base, exponent] if exponent.is_Integer and 0 <= exponent <= MAX_EXPONENT:
                return self._power(base, int(exponent))
            case "FloorDiv", [a, b]:
                return FloorDiv(a, self._divisor(b))
            case "Mod", [a, b]:
                return Mod(a, self._divisor(b))
            case "Max", [_, *_] if len(args) <= MAX_BRANCHES:
                return _extreme(sympy.Max, args)
            case "Min", [_, *_] if len(args) <= MAX_BRANCHES:
                return _extreme(sympy.Min, args)
        raise self.syntax_error()

    def _power(self, base: Expr, exponent: int) -> Expr:
        """Return a power, without sympy's rules, whose time is unbounded for nested powers."""
        if degree(base) * exponent > MAX_DEGREE:
            raise UserError(f"power too large in expression {quote_text(self._text)}")
        if base.is_Integer or exponent < 2:
            return base**exponent
        return sympy.Pow(base, exponent, evaluate=False)

    def _divisor(self, expr: Expr) -> Expr:
        if expr == 0:
            raise UserError(f"division by zero in expression {quote_text(self._text)}")
        return expr

    def syntax_error(self) -> UserError:
        """Return the error for a text that is not an integer expression."""
        return NotAnIntegerError(f"not an integer expression: {quote_text(self._text)}")


def _extreme(kind: type[sympy.Max] | type[sympy.Min], args: list[Expr]) -> Expr:
    """Return Max or Min of expressions without sympy's pairwise comparison, which takes minutes on
    malicious texts; expressions written by a program are already simplified.
    """
    numbers = [int(arg) for arg in args if arg.is_Integer]
    others = [arg for arg in args if not arg.is_Integer]
    if numbers:
        others.append(sympy.Integer(max(numbers) if kind is sympy.Max else min(numbers)))
    return others[0] if len(others) == 1 else kind(*others, evaluate=False)


def check_name(name: str) -> str:
    """Return the name if valid for a symbol: letters, digits and ``_``, not a digit first."""
    plain = len(name) <= MAX_SYMBOL_NAME and name.isidentifier()
    plain = plain and (name.replace("_", "") or "0").isalnum()
    # Python's parser normalizes identifiers.
    if not plain or unicodedata.normalize("NFKC", name) != name or name in FUNCTIONS:
        raise UserError(f"not a symbol name: {quote_text(name)}")
    return name


def quote_text(text: str) -> str:
    """Quote text from a file for an error message, and truncate it if long."""
    return repr(text if len(text) <= 80 else text[:77] + "...")
