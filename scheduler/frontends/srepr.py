"""Integer expressions as torch.export writes them: the text of sympy's ``srepr``.

``Mul(Integer(256), Symbol('s27', positive=True, integer=True))`` is parsed with ``ast`` and built
from a list of known constructors; nothing in it is run. Torch's own functions become ours:
``FloorDiv``, ``CleanDiv`` → ``FloorDiv``; ``Mod``, ``PythonMod`` → ``Mod``; ``ModularIndexing(a,
b, c)`` → ``(a // b) % c``.
"""

from __future__ import annotations

import ast

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv, Mod, symbol
from scheduler.ir.index.text import (
    MAX_BRANCHES,
    MAX_DEPTH,
    MAX_EXPONENT,
    MAX_PARTS,
    MAX_TEXT,
    check_name,
    check_size,
    extreme,
    power,
    shown,
)
from scheduler.outcome import UserError

_ASSUMPTIONS = frozenset({"positive", "nonnegative", "integer", "negative", "nonzero", "real"})


def parse_srepr(text: str) -> Expr:
    """The expression over ``indexing.symbol`` symbols.

    Raises ``UserError`` for anything that is no integer expression within the limits of
    ``ir.index.text``.
    """
    if len(text) > MAX_TEXT:
        raise UserError(f"expression of {len(text)} characters; at most {MAX_TEXT} are read")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UserError(f"not an integer expression: {shown(text)}") from error
    return _Parser(text).read(tree, 0)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._parts = 0

    def read(self, node: ast.expr, depth: int) -> Expr:
        self._parts += 1
        if self._parts > MAX_PARTS or depth > MAX_DEPTH:
            raise UserError(f"expression too large: {shown(self._text)}")
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            raise self._wrong()
        name = node.func.id
        if name == "Symbol":
            return self._symbol(node)
        if node.keywords:
            raise self._wrong()
        if name == "Integer":
            return check_size(self._integer(node), self._text)
        args = [self.read(arg, depth + 1) for arg in node.args]
        return check_size(self._build(name, args), self._text)

    def _symbol(self, node: ast.Call) -> Expr:
        plain = all(
            keyword.arg in _ASSUMPTIONS
            and isinstance(keyword.value, ast.Constant)
            and isinstance(keyword.value.value, bool)
            for keyword in node.keywords
        )
        match node.args:
            case [ast.Constant(value=str(name))] if plain:
                return symbol(check_name(name))
        raise self._wrong()

    def _integer(self, node: ast.Call) -> Expr:
        match node.args:
            case [ast.Constant(value=int(value))] if not isinstance(value, bool):
                return sympy.Integer(value)
            case [ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value)))]:
                return sympy.Integer(-value)
        raise self._wrong()

    def _build(self, name: str, args: list[Expr]) -> Expr:
        match name, args:
            case "Add", [_, *_]:
                return sympy.Add(*args)
            case "Mul", [_, *_]:
                return sympy.Mul(*args)
            case "Max", [_, *_] if len(args) <= MAX_BRANCHES:
                return extreme(sympy.Max, args)
            case "Min", [_, *_] if len(args) <= MAX_BRANCHES:
                return extreme(sympy.Min, args)
            case "Pow", [base, exponent]:
                if exponent.is_Integer and 0 <= exponent <= MAX_EXPONENT:
                    return power(base, int(exponent))
            case "FloorDiv" | "CleanDiv", [a, b] if b != 0:
                return FloorDiv(a, b)
            case "Mod" | "PythonMod", [a, b] if b != 0:
                return Mod(a, b)
            case "ModularIndexing", [a, b, c] if b != 0 and c != 0:
                return Mod(FloorDiv(a, b), c)
        raise self._wrong()

    def _wrong(self) -> UserError:
        return UserError(f"not an integer expression: {shown(self._text)}")
