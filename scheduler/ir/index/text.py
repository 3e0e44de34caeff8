"""Integer expressions as plain text, both ways: ``256*s27``, ``Max(1, s27//8)``.

The text is Python's, so that a reader of a bundle can check it by eye; it is parsed with ``ast``
and a short list of what may stand in it, never evaluated. Printing orders terms by their text, so
the same expression gives the same text in every process. ``parse_expr(print_expr(e)) == e``.
"""

from __future__ import annotations

import ast
import re

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv, Mod, symbol
from scheduler.outcome import UserError

MAX_TEXT = 20_000  # characters of one expression
MAX_PARTS = 2_000  # operators, numbers and names of one expression
MAX_DEPTH = 100
MAX_BITS = 256  # of an integer in it: sizes have 63
MAX_EXPONENT = 16
MAX_BRANCHES = 32  # arguments of one Max or Min

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_RESERVED = frozenset({"Max", "Min", "FloorDiv", "Mod"})
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
        return f"{_wrapped(expr.base, _ATOM)}**{int(expr.exp)}", _POWER
    if isinstance(expr, FloorDiv | Mod):
        left, right = expr.args
        operator = "//" if isinstance(expr, FloorDiv) else "%"
        return f"{_wrapped(left, _POWER)}{operator}{_wrapped(right, _POWER)}", _PRODUCT
    if isinstance(expr, sympy.Max | sympy.Min):
        numbers = [str(int(arg)) for arg in expr.args if arg.is_Integer]
        others = sorted(_print(arg)[0] for arg in expr.args if not arg.is_Integer)
        return f"{type(expr).__name__}({', '.join(numbers + others)})", _ATOM
    raise TypeError(f"no integer expression: {expr!r}")


def _wrapped(expr: Expr, least: int) -> str:
    text, binding = _print(expr)
    return text if binding >= least else f"({text})"


def _print_product(expr: Expr) -> tuple[int, str]:
    """Sign and text of a product without its sign, the number first."""
    numbers = [int(arg) for arg in expr.args if arg.is_Integer]
    others = sorted(_wrapped(arg, _POWER) for arg in expr.args if not arg.is_Integer)
    coefficient = numbers[0] if numbers else 1
    # A product of one number and one sum was not multiplied out; the number tells that to the
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
            sign, text = 1, _wrapped(arg, _PRODUCT)
        terms.append((bool(arg.is_Integer), sign < 0, text))  # numbers last, negative ones late
    terms.sort()
    first, *rest = terms
    head = f"-{first[2]}" if first[1] else first[2]
    return head + "".join(f" {'-' if negative else '+'} {text}" for _, negative, text in rest)


def parse_expr(text: str) -> Expr:
    """The expression that a text says: ``+ - * // % **``, ``Max Min FloorDiv Mod``, names, ints.

    Every name becomes ``indexing.symbol(name)``. Raises ``UserError`` for any other text, and for
    one beyond the limits of this module; never runs anything from it.
    """
    if len(text) > MAX_TEXT:
        raise UserError(f"expression of {len(text)} characters; at most {MAX_TEXT} are read")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UserError(f"not an integer expression: {shown(text)}") from error
    return _Parser(text).read(tree, 0)


def check_size(value: Expr, text: str) -> Expr:
    """The value itself, unless it became a number that no size can be."""
    if value.is_Integer and int(value).bit_length() > MAX_BITS:
        raise UserError(f"number of more than {MAX_BITS} bits in expression {shown(text)}")
    return value


def power(base: Expr, exponent: int) -> Expr:
    """A power, without sympy's rules for it, whose time grows without bound on nested ones."""
    if base.is_Integer or exponent < 2:
        return base**exponent
    return sympy.Pow(base, exponent, evaluate=False)


def extreme(kind: type[sympy.Max] | type[sympy.Min], args: list[Expr]) -> Expr:
    """Max or Min of expressions, without sympy's comparing each with each: that takes minutes on
    a text made for it, and what a program wrote out is as simple as it gets.
    """
    numbers = [int(arg) for arg in args if arg.is_Integer]
    others = [arg for arg in args if not arg.is_Integer]
    if numbers:
        others.append(sympy.Integer(max(numbers) if kind is sympy.Max else min(numbers)))
    return others[0] if len(others) == 1 else kind(*others, evaluate=False)


def check_name(name: str) -> str:
    """The name itself if it can stand for a symbol."""
    if not _NAME.fullmatch(name) or name in _RESERVED:
        raise UserError(f"not a symbol's name: {shown(name)}")
    return name


def shown(text: str) -> str:
    """Text from a file as an error may show it: quoted, and cut where it is long."""
    return repr(text if len(text) <= 80 else text[:77] + "...")


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._parts = 0

    def read(self, node: ast.expr, depth: int) -> Expr:
        self._parts += 1
        if self._parts > MAX_PARTS or depth > MAX_DEPTH:
            raise UserError(f"expression too large: {shown(self._text)}")
        return check_size(self._value(node, depth + 1), self._text)

    def _value(self, node: ast.expr, depth: int) -> Expr:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return sympy.Integer(node.value)
        if isinstance(node, ast.Name):
            return symbol(check_name(node.id))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return _negated(self.read(node.operand, depth))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            return sympy.Add(*self._terms(node, depth))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return _product(self._factors(node, depth))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Mod | ast.Pow):
            left, right = self.read(node.left, depth), self.read(node.right, depth)
            return self._binary(type(node.op).__name__, left, right)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            return self._call(node.func.id, [self.read(arg, depth) for arg in node.args])
        raise self._wrong()

    def _terms(self, node: ast.expr, depth: int) -> list[Expr]:
        """Terms of a chain of sums, without recursion: sums are as long as they like."""
        terms: list[Expr] = []
        while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            term = self.read(node.right, depth)
            terms.append(term if isinstance(node.op, ast.Add) else _negated(term))
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

    def _binary(self, name: str, left: Expr, right: Expr) -> Expr:
        if name == "Pow":
            if not right.is_Integer or not 0 <= right <= MAX_EXPONENT:
                raise self._wrong()
            return power(left, int(right))
        if right == 0:
            raise UserError(f"division by zero in expression {shown(self._text)}")
        return FloorDiv(left, right) if name == "FloorDiv" else Mod(left, right)

    def _call(self, name: str, args: list[Expr]) -> Expr:
        if name in ("FloorDiv", "Mod") and len(args) == 2:
            return self._binary(name, *args)
        if name in ("Max", "Min") and 1 <= len(args) <= MAX_BRANCHES:
            return extreme(sympy.Max if name == "Max" else sympy.Min, args)
        raise self._wrong()

    def _wrong(self) -> UserError:
        return UserError(f"not an integer expression: {shown(self._text)}")


def _product(factors: list[Expr]) -> Expr:
    """The product; a number times one sum stays as it was written."""
    if len(factors) == 2 and factors[0].is_Integer and factors[1].is_Add:
        return sympy.Mul(*factors, evaluate=False)
    return sympy.Mul(*factors)


def _negated(value: Expr) -> Expr:
    if value.is_Add:
        return sympy.Mul(sympy.Integer(-1), value, evaluate=False)
    if value.is_Mul and len(value.args) == 2 and value.args[0].is_Integer and value.args[1].is_Add:
        return sympy.Mul(-value.args[0], value.args[1], evaluate=False)
    return -value
