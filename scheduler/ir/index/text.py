"""Integer expressions to and from plain text: ``256*s27``, ``Max(1, s27//8)``.

The text has Python's syntax, so that a bundle is readable; it is parsed with ``ast`` and a short
list of allowed nodes, never evaluated. Printing sorts terms by their text, so that the same
expression gives the same text in every process. ``parse_expr(print_expr(e)) == e``.
"""

from __future__ import annotations

import ast
import keyword
import re
from typing import Any

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv, Mod, symbol
from scheduler.ir.index.parser import FUNCTIONS, ExpressionParser, check_name

_SUM, _PRODUCT, _POWER, _ATOM = 1, 2, 3, 4  # precedence of a text


def print_expr(expr: Expr | int) -> str:
    """Format the expression as text that ``parse_expr`` reads back exactly.

    Raises ``TypeError`` if it is not an integer expression (a fraction, a sympy function).
    """
    return _print(sympy.Integer(expr) if isinstance(expr, int) else expr)[0]


def _print(expr: Expr) -> tuple[str, int]:
    if expr.is_Integer:
        number = int(expr)  # comparing sympy integers is slow
        return str(number), _ATOM if number >= 0 else _SUM
    if expr.is_Symbol:
        return str(expr.name), _ATOM
    if expr.is_Add:
        return _print_sum(expr), _SUM
    if expr.is_Mul:
        sign, text = _print_product(expr)
        return (text, _PRODUCT) if sign > 0 else (f"-{text}", _SUM)
    if expr.is_Pow and expr.exp.is_Integer and expr.exp > 0:
        return f"{_parenthesize(expr.base, _ATOM)}**{int(expr.exp)}", _POWER
    if isinstance(expr, FloorDiv | Mod):
        left, right = expr.args
        operator = "//" if isinstance(expr, FloorDiv) else "%"
        return f"{_parenthesize(left, _POWER)}{operator}{_parenthesize(right, _POWER)}", _PRODUCT
    if isinstance(expr, sympy.Max | sympy.Min):
        numbers = [str(int(arg)) for arg in expr.args if arg.is_Integer]
        others = sorted(_print(arg)[0] for arg in expr.args if not arg.is_Integer)
        return f"{type(expr).__name__}({', '.join(numbers + others)})", _ATOM
    raise TypeError(f"not an integer expression: {expr!r}")


def _parenthesize(expr: Expr, least: int) -> str:
    text, binding = _print(expr)
    return text if binding >= least else f"({text})"


def _print_product(expr: Expr) -> tuple[int, str]:
    """Return the sign of a product, and its text without the sign, numbers first."""
    numbers = [int(arg) for arg in expr.args if arg.is_Integer]
    others = sorted(_parenthesize(arg, _POWER) for arg in expr.args if not arg.is_Integer)
    coefficient = numbers[0] if numbers else 1
    # A product of one number and one sum was not expanded; the number, even 1, tells the
    # parser.
    undistributed = len(expr.args) == 2 and any(arg.is_Add for arg in expr.args)
    number = [str(abs(coefficient))] if abs(coefficient) != 1 or undistributed else []
    return (1 if coefficient >= 0 else -1), "*".join(number + others)


def _print_sum(expr: Expr) -> str:
    terms = []
    for arg in expr.args:
        if arg.is_Integer:
            sign, text = (1 if arg >= 0 else -1), str(abs(int(arg)))
        elif arg.is_Mul:
            sign, text = _print_product(arg)
        else:
            sign, text = 1, _parenthesize(arg, _PRODUCT)
        terms.append((bool(arg.is_Integer), sign < 0, text))  # numbers last, negative ones late
    terms.sort()
    first, *rest = terms
    head = f"-{first[2]}" if first[1] else first[2]
    return head + "".join(f" {'-' if negative else '+'} {text}" for _, negative, text in rest)


def parse_expr(text: str) -> Expr:
    """Parse a text of ``+ - * // % **``, ``Max Min FloorDiv Mod``, names and ints.

    Every name becomes ``functions.symbol(name)``. Raises ``UserError`` for any other text, and for
    one beyond the limits of ``parser.py``; never executes the text.
    """
    return TextParser(text).parse()


# Sizes may be named like Python's keywords, which its parser does not accept as names.
_WORD = re.compile(rf"\b(?:{'|'.join(keyword.kwlist)})\b")
_AS_NAME = "\N{MIDDLE DOT}"  # valid in a Python identifier, but not in the name of a size


class TextParser(ExpressionParser):
    """Parser of ``parse_expr``; ``function`` builds the calls of functions."""

    def source(self) -> str:
        return _WORD.sub(lambda word: word[0] + _AS_NAME, super().source())

    def value(self, node: ast.expr, depth: int) -> Expr:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return sympy.Integer(node.value)
        if isinstance(node, ast.Name):
            return symbol(check_name(node.id.removesuffix(_AS_NAME)))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return _negate(self.read(node.operand, depth))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            terms = self._chain(node, ast.Add | ast.Sub, depth)
            return sympy.Add(*(_negate(e) if isinstance(op, ast.Sub) else e for op, e in terms))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            factors = [factor for _, factor in self._chain(node, ast.Mult, depth)]
            # A number times one sum was not expanded.
            kept = len(factors) == 2 and factors[0].is_Integer and factors[1].is_Add
            return sympy.Mul(*factors, evaluate=False) if kept else sympy.Mul(*factors)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Mod | ast.Pow):
            left, right = self.read(node.left, depth), self.read(node.right, depth)
            return self.call(type(node.op).__name__, [left, right])
        match node:
            case ast.Call(func=ast.Name(id=name), keywords=[]):
                return self.function(name, [self.read(arg, depth) for arg in node.args])
        raise self.syntax_error()

    def function(self, name: str, args: list[Expr]) -> Expr:
        if name not in FUNCTIONS:
            raise self.syntax_error()
        return self.call(name, args)

    def _chain(
        self, node: ast.expr, operators: Any, depth: int
    ) -> list[tuple[ast.operator | None, Expr]]:
        """Return the operands of a chain of left-associative operators, each with the operator
        before it. Without recursion, since sums may be long."""
        operands: list[tuple[ast.operator | None, Expr]] = []
        while isinstance(node, ast.BinOp) and isinstance(node.op, operators):
            operands.append((node.op, self.read(node.right, depth)))
            node = node.left
        operands.append((None, self.read(node, depth)))
        return operands[::-1]


def _negate(value: Expr) -> Expr:
    if value.is_Add:
        return sympy.Mul(sympy.Integer(-1), value, evaluate=False)
    if value.is_Mul and len(value.args) == 2 and value.args[0].is_Integer and value.args[1].is_Add:
        return sympy.Mul(-value.args[0], value.args[1], evaluate=False)
    return -value
