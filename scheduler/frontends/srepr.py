"""Parse integer expressions as torch.export writes them: the text of sympy's ``srepr`` or, before
torch 2.6, of its ``str``.

``Mul(Integer(256), Symbol('s27', positive=True, integer=True))`` is parsed with ``ast`` and built
from a list of known constructors; nothing is executed. Torch's own functions are mapped:
``FloorDiv``, ``CleanDiv`` → ``FloorDiv``; ``Mod``, ``PythonMod`` → ``Mod``; ``ModularIndexing(a, b,
c)`` → ``(a // b) % c``.

A float that is converted to an integer (``FloorToInt``, ``CeilToInt``, ``TruncToInt``) is supported
if floats compute it without rounding, so that an integer division is equivalent: a size times 0.5,
a quotient of two integers. A float that rounds (a size times 1.7), a choice between two values and
a power with a size as exponent are not integer expressions: each becomes a separate size
(``u1000000`` …) that, like a size that depends on data, is known once its node has run.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import symbol
from scheduler.ir.index.parser import ExpressionParser, NotAnIntegerError, check_name
from scheduler.ir.index.text import TextParser

_TORCH_NAMES = {"CleanDiv": "FloorDiv", "PythonMod": "Mod"}
_WHOLE = frozenset({"FloorToInt", "CeilToInt", "TruncToInt"})
_MADE_BY_NODES = _WHOLE | {"RoundToInt", "Piecewise", "PowByNatural"}
_FIRST_UNREAD = 1_000_000  # torch numbers its own unbacked sizes from 0
# Bits of a float's numerator: products with any size of a tensor stay below 53 bits.
_EXACT_BITS = 20
_ASSUMPTIONS = frozenset({"positive", "nonnegative", "integer", "negative", "nonzero", "real"})


def parse_srepr(text: str, unread: dict[str, Expr]) -> Expr:
    """Return the expression over ``functions.symbol`` symbols.

    Raises ``UserError`` for anything that is not an integer expression within the limits of
    ``ir.index.parsing``. ``unread`` collects the parts that become separate sizes, by text.
    """
    return _SreprParser(text, unread).parse()


def parse_plain(text: str) -> Expr:
    """Like ``parse_srepr``, for the form ``2*s0 + s1//4`` that torch 2.4 and 2.5 write."""
    return _PlainParser(text).parse()


class _PlainParser(TextParser):
    def function(self, name: str, args: list[Expr]) -> Expr:
        if name == "ModularIndexing" and len(args) == 3:
            return self.call("Mod", [self.call("FloorDiv", args[:2]), args[2]])
        return super().function(_TORCH_NAMES.get(name, name), args)


@dataclass(frozen=True)
class _Quotient:
    """A float equal to ``above / below``; the quotient is exact if ``below`` is a power of two."""

    above: Expr
    below: int = 1

    @property
    def is_exact(self) -> bool:
        return self.below & (self.below - 1) == 0


class _SreprParser(ExpressionParser):
    def __init__(self, text: str, unread: dict[str, Expr]) -> None:
        super().__init__(text)
        self._unread = unread

    def value(self, node: ast.expr, depth: int) -> Expr:
        try:
            return self._value(node, depth)
        except NotAnIntegerError:
            called = node.func if isinstance(node, ast.Call) else None
            if not isinstance(called, ast.Name) or called.id not in _MADE_BY_NODES:
                raise
        part = ast.get_source_segment(self.source(), node) or ""
        return self._unread.setdefault(part, symbol(f"u{_FIRST_UNREAD + len(self._unread)}"))

    def _value(self, node: ast.expr, depth: int) -> Expr:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            raise self.syntax_error()
        name = node.func.id
        if name == "Symbol":
            return self._symbol(node)
        if node.keywords:
            raise self.syntax_error()
        if name == "Integer":
            return self._integer(node)
        if name in _WHOLE and len(node.args) == 1:
            return self._whole(name, self._exact(node.args[0], depth))
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
        raise self.syntax_error()

    def _integer(self, node: ast.Call) -> Expr:
        match node.args:
            case [ast.Constant(value=int(value))] if not isinstance(value, bool):
                return sympy.Integer(value)
            case [ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value)))]:
                return sympy.Integer(-value)
        raise self.syntax_error()

    def _build(self, name: str, args: list[Expr]) -> Expr:
        match name, args:
            case "Add", [_, *_]:
                return sympy.Add(*args)
            case "Mul", [_, *_]:
                return sympy.Mul(*args)
            case "CeilDiv", [a, b]:
                return -self.call("FloorDiv", [-a, b])
            case "Identity", [a]:
                return a
            case "ModularIndexing", [a, b, c]:
                return self.call("Mod", [self.call("FloorDiv", [a, b]), c])
        return self.call(_TORCH_NAMES.get(name, name), args)

    # -- floats ----------------------------------------------------------------------------------

    def _exact(self, node: ast.expr, depth: int) -> _Quotient:
        """A float expression that does not round, except in a final division."""
        self.count(depth)
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            raise self.syntax_error()
        match node.func.id, node.args:
            case "Float", [ast.Constant(value=str(text)), *_]:
                return self._float(text)
            case "Integer", _:
                return _Quotient(self._integer(node))
            case "ToFloat", [whole]:
                return _Quotient(self.read(whole, depth + 1))
            case "IntTrueDiv", [above, below]:
                divisor = self.read(below, depth + 1)
                if not divisor.is_Integer or divisor <= 0:
                    raise self.syntax_error()
                return _Quotient(self.read(above, depth + 1), int(divisor))
            case "FloatTrueDiv", [above, below]:
                return self._divided(self._exact(above, depth + 1), self._exact(below, depth + 1))
            case "Mul", [_, *_] as parts:
                return reduce(self._product, [self._exact(part, depth + 1) for part in parts])
            case "Add", [_, *_] as parts:
                return reduce(self._sum, [self._exact(part, depth + 1) for part in parts])
        raise self.syntax_error()

    def _float(self, text: str) -> _Quotient:
        try:
            value = Fraction(float(text))
        except (ValueError, OverflowError):
            raise self.syntax_error() from None
        if max(value.numerator.bit_length(), value.denominator.bit_length()) > _EXACT_BITS:
            raise self.syntax_error()
        return _Quotient(sympy.Integer(value.numerator), value.denominator)

    def _product(self, a: _Quotient, b: _Quotient) -> _Quotient:
        for one, other in ((a, b), (b, a)):
            power = other.above.is_Integer and abs(int(other.above)).bit_count() == 1
            if other.is_exact and (one.is_exact or power):
                return _Quotient(sympy.Mul(one.above, other.above), one.below * other.below)
        raise self.syntax_error()

    def _sum(self, a: _Quotient, b: _Quotient) -> _Quotient:
        if not (a.is_exact and b.is_exact):
            raise self.syntax_error()
        below = max(a.below, b.below)
        terms = (sympy.Mul(below // one.below, one.above) for one in (a, b))
        return _Quotient(sympy.Add(*terms), below)

    def _divided(self, a: _Quotient, b: _Quotient) -> _Quotient:
        if not b.above.is_Integer or b.above <= 0 or not b.is_exact:
            raise self.syntax_error()
        if int(b.above).bit_count() != 1 and not a.is_exact:
            raise self.syntax_error()
        return _Quotient(sympy.Mul(a.above, b.below), a.below * int(b.above))

    def _whole(self, name: str, quotient: _Quotient) -> Expr:
        above, below = quotient.above, sympy.Integer(quotient.below)
        if name == "CeilToInt":
            return -self.call("FloorDiv", [-above, below])
        if name == "TruncToInt" and not above.is_nonnegative:
            raise self.syntax_error()
        return self.call("FloorDiv", [above, below])
