"""Integer expressions as torch.export writes them: the text of sympy's ``srepr``, or, before
torch 2.6, of its ``str``.

``Mul(Integer(256), Symbol('s27', positive=True, integer=True))`` is parsed with ``ast`` and built
from a list of known constructors; nothing in it is run. Torch's own functions become ours:
``FloorDiv``, ``CleanDiv`` → ``FloorDiv``; ``Mod``, ``PythonMod`` → ``Mod``; ``ModularIndexing(a,
b, c)`` → ``(a // b) % c``.
"""

from __future__ import annotations

import ast

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import symbol
from scheduler.ir.index.parsing import ExpressionParser, check_name
from scheduler.ir.index.text import TextParser

_TORCH_NAMES = {"CleanDiv": "FloorDiv", "PythonMod": "Mod"}
_ASSUMPTIONS = frozenset({"positive", "nonnegative", "integer", "negative", "nonzero", "real"})


def parse_srepr(text: str) -> Expr:
    """The expression over ``functions.symbol`` symbols.

    Raises ``UserError`` for anything that is no integer expression within the limits of
    ``ir.index.parsing``.
    """
    return _SreprParser(text).parse()


def parse_plain(text: str) -> Expr:
    """As ``parse_srepr``, of the form ``2*s0 + s1//4`` that torch 2.4 and 2.5 write."""
    return _PlainParser(text).parse()


class _PlainParser(TextParser):
    def function(self, name: str, args: list[Expr]) -> Expr:
        if name == "ModularIndexing" and len(args) == 3:
            return self.call("Mod", [self.call("FloorDiv", args[:2]), args[2]])
        return super().function(_TORCH_NAMES.get(name, name), args)


class _SreprParser(ExpressionParser):
    def value(self, node: ast.expr, depth: int) -> Expr:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            raise self.wrong()
        name = node.func.id
        if name == "Symbol":
            return self._symbol(node)
        if node.keywords:
            raise self.wrong()
        if name == "Integer":
            return self._integer(node)
        return self._build(name, [self.read(arg, depth) for arg in node.args])

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
        raise self.wrong()

    def _integer(self, node: ast.Call) -> Expr:
        match node.args:
            case [ast.Constant(value=int(value))] if not isinstance(value, bool):
                return sympy.Integer(value)
            case [ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value)))]:
                return sympy.Integer(-value)
        raise self.wrong()

    def _build(self, name: str, args: list[Expr]) -> Expr:
        match name, args:
            case "Add", [_, *_]:
                return sympy.Add(*args)
            case "Mul", [_, *_]:
                return sympy.Mul(*args)
            case "ModularIndexing", [a, b, c]:
                return self.call("Mod", [self.call("FloorDiv", [a, b]), c])
        return self.call(_TORCH_NAMES.get(name, name), args)
