"""Integer expressions as plain text, both ways: ``256*s27``, ``Max(1, s27//8)``.

The text is Python's, so that a reader of a bundle can check it by eye; it is parsed with ``ast``
and a short list of what may stand in it, never evaluated. Printing orders terms by their text, so
the same expression gives the same text in every process. ``parse_expr(print_expr(e)) == e``.
"""

from __future__ import annotations

import ast
import keyword
import re

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv, Mod, symbol
from scheduler.ir.index.parser import FUNCTIONS, ExpressionParser, check_name

_SUM, _PRODUCT, _POWER, _ATOM = 1, 2, 3, 4  # how tightly a text binds


def print_expr(expr: Expr | int) -> str:
    """The expression as text that ``parse_expr`` reads back exactly.

    Raises ``TypeError`` for what is no integer expression (a fraction, a function of sympy's own).
    """
    return _print(sympy.Integer(expr) if isinstance(expr, int) else expr)[0]


def _print(expr: Expr) -> tuple[str, int]:
    if expr.is_Integer:
        number = int(expr)  # comparing sympy's own integers is slow
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
    raise TypeError(f"no integer expression: {expr!r}")


def _parenthesize(expr: Expr, least: int) -> str:
    text, binding = _print(expr)
    return text if binding >= least else f"({text})"


def _print_product(expr: Expr) -> tuple[int, str]:
    """Sign and text of a product without its sign, the number first."""
    numbers = [int(arg) for arg in expr.args if arg.is_Integer]
    others = sorted(_parenthesize(arg, _POWER) for arg in expr.args if not arg.is_Integer)
    coefficient = numbers[0] if numbers else 1
    # A product of one number and one sum was not multiplied out; the number shows that to the
    # parser, 1 included.
    undistributed = len(expr.args) == 2 and any(arg.is_Add for arg in expr.args)
    shown = [str(abs(coefficient))] if abs(coefficient) != 1 or undistributed else []
    return (1 if coefficient >= 0 else -1), "*".join(shown + others)


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
    """The expression that a text says: ``+ - * // % **``, ``Max Min FloorDiv Mod``, names, ints.

    Every name becomes ``functions.symbol(name)``. Raises ``UserError`` for any other text, and for
    one beyond the limits of ``parsing``; never runs anything from it.
    """
    return TextParser(text).parse()


# Sizes may be called like words of Python, which its parser takes for no names.
_WORD = re.compile(rf"\b(?:{'|'.join(keyword.kwlist)})\b")
_AS_NAME = "\N{MIDDLE DOT}"  # may stand in an identifier of Python, and in no name of a size


class TextParser(ExpressionParser):
    """Reads ``parse_expr``'s text; ``function`` builds what a name with arguments says."""

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
            return sympy.Add(*self._terms(node, depth))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return _product(self._factors(node, depth))
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

    def _terms(self, node: ast.expr, depth: int) -> list[Expr]:
        """Terms of a chain of sums, without recursion: sums are as long as they like."""
        terms: list[Expr] = []
        while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            term = self.read(node.right, depth)
            terms.append(term if isinstance(node.op, ast.Add) else _negate(term))
            node = node.left
        terms.append(self.read(node, depth))
        return terms[::-1]

    def _factors(self, node: ast.expr, depth: int) -> list[Expr]:
        factors: list[Expr] = []
        while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            factors.append(self.read(node.right, depth))
            node = node.left
        factors.append(self.read(node, depth))
        return factors[::-1]


def _product(factors: list[Expr]) -> Expr:
    """The product; a number times one sum stays as it was written."""
    if len(factors) == 2 and factors[0].is_Integer and factors[1].is_Add:
        return sympy.Mul(*factors, evaluate=False)
    return sympy.Mul(*factors)


def _negate(value: Expr) -> Expr:
    if value.is_Add:
        return sympy.Mul(sympy.Integer(-1), value, evaluate=False)
    if value.is_Mul and len(value.args) == 2 and value.args[0].is_Integer and value.args[1].is_Add:
        return sympy.Mul(-value.args[0], value.args[1], evaluate=False)
    return -value
