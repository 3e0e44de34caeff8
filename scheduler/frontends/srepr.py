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
import operator
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import symbol
from scheduler.ir.index.parser import ExpressionParser, NotAnIntegerError, check_name
from scheduler.ir.index.text import TextParser

_TORCH_NAMES = {"CleanDiv": "FloorDiv", "PythonMod": "Mod"}
_FLOAT_TO_INT = frozenset({"FloorToInt", "CeilToInt", "TruncToInt"})
_MADE_BY_NODES = _FLOAT_TO_INT | {"RoundToInt", "Piecewise", "PowByNatural"}
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


class _RoundingError(Exception):
    """A float expression rounds."""


@dataclass(frozen=True)
class _Quotient:
    """A float equal to ``above / below``; the quotient is exact if ``below`` is a power of two.

    Its operators raise ``_RoundingError`` if the float would round.
    """

    above: Expr
    below: int = 1

    @property
    def is_exact(self) -> bool:
        return self.below & (self.below - 1) == 0

    def __mul__(self, other: _Quotient) -> _Quotient:
        for a, b in ((self, other), (other, self)):
            is_power = b.above.is_Integer and abs(int(b.above)).bit_count() == 1
            if b.is_exact and (a.is_exact or is_power):
                return _Quotient(sympy.Mul(a.above, b.above), a.below * b.below)
        raise _RoundingError

    def __add__(self, other: _Quotient) -> _Quotient:
        if not (self.is_exact and other.is_exact):
            raise _RoundingError
        below = max(self.below, other.below)
        terms = (sympy.Mul(below // term.below, term.above) for term in (self, other))
        return _Quotient(sympy.Add(*terms), below)

    def __truediv__(self, other: _Quotient) -> _Quotient:
        if not other.above.is_Integer or other.above <= 0 or not other.is_exact:
            raise _RoundingError
        if int(other.above).bit_count() != 1 and not self.is_exact:
            raise _RoundingError
        return _Quotient(sympy.Mul(self.above, other.below), self.below * int(other.above))


class _SreprParser(ExpressionParser):
    def __init__(self, text: str, unread: dict[str, Expr]) -> None:
        super().__init__(text)
        self._unread = unread

    def value(self, node: ast.expr, depth: int) -> Expr:
        match node:
            case ast.Call(func=ast.Name(id="Symbol"), args=[ast.Constant(value=str(name))]):
                if all(
                    keyword.arg in _ASSUMPTIONS
                    and isinstance(keyword.value, ast.Constant)
                    and isinstance(keyword.value.value, bool)
                    for keyword in node.keywords
                ):
                    return symbol(check_name(name))
            case ast.Call(func=ast.Name(id=name)) if name != "Symbol":
                try:
                    return self._call(name, node, depth)
                except NotAnIntegerError:
                    if name not in _MADE_BY_NODES:
                        raise
                part = ast.get_source_segment(self.source(), node) or ""
                new_size = symbol(f"u{_FIRST_UNREAD + len(self._unread)}")
                return self._unread.setdefault(part, new_size)
        raise self.syntax_error()

    def _call(self, name: str, node: ast.Call, depth: int) -> Expr:
        if node.keywords:
            raise self.syntax_error()
        if name == "Integer":
            return self._integer(node)
        if name in _FLOAT_TO_INT and len(node.args) == 1:
            return self._float_to_int(name, node.args[0], depth)
        match name, [self.read(arg, depth) for arg in node.args]:
            case "Add", [_, *_] as terms:
                return sympy.Add(*terms)
            case "Mul", [_, *_] as factors:
                return sympy.Mul(*factors)
            case "CeilDiv", [a, b]:
                return -self.call("FloorDiv", [-a, b])
            case "Identity", [a]:
                return a
            case "ModularIndexing", [a, b, c]:
                return self.call("Mod", [self.call("FloorDiv", [a, b]), c])
            case _, args:
                return self.call(_TORCH_NAMES.get(name, name), args)

    def _integer(self, node: ast.Call) -> Expr:
        match node.args:
            case [ast.Constant(value=int(value))] if not isinstance(value, bool):
                return sympy.Integer(value)
            case [ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value)))]:
                return sympy.Integer(-value)
        raise self.syntax_error()

    # -- floats ----------------------------------------------------------------------------------

    def _float_to_int(self, name: str, node: ast.expr, depth: int) -> Expr:
        try:
            quotient = self._exact(node, depth)
        except _RoundingError:
            raise self.syntax_error() from None
        above, below = quotient.above, sympy.Integer(quotient.below)
        if name == "CeilToInt":
            return -self.call("FloorDiv", [-above, below])
        if name == "TruncToInt" and not above.is_nonnegative:
            raise self.syntax_error()
        return self.call("FloorDiv", [above, below])

    def _exact(self, node: ast.expr, depth: int) -> _Quotient:
        """A float expression that does not round, except in a final division."""
        self.count(depth)
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            raise self.syntax_error()
        match node.func.id, node.args:
            case "Float", [ast.Constant(value=str(text)), *_]:
                try:
                    value = Fraction(float(text))
                except (ValueError, OverflowError):
                    raise self.syntax_error() from None
                if max(value.numerator.bit_length(), value.denominator.bit_length()) > _EXACT_BITS:
                    raise self.syntax_error()
                return _Quotient(sympy.Integer(value.numerator), value.denominator)
            case "Integer", _:
                return _Quotient(self._integer(node))
            case "ToFloat", [integer]:
                return _Quotient(self.read(integer, depth + 1))
            case "IntTrueDiv", [above, below]:
                divisor = self.read(below, depth + 1)
                if not divisor.is_Integer or divisor <= 0:
                    raise self.syntax_error()
                return _Quotient(self.read(above, depth + 1), int(divisor))
            case "FloatTrueDiv" | "Mul" | "Add" as operator_name, [_, *_] as operands:
                if operator_name == "FloatTrueDiv" and len(operands) != 2:
                    raise self.syntax_error()
                return reduce(
                    _FLOAT_OPERATORS[operator_name],
                    [self._exact(operand, depth + 1) for operand in operands],
                )
        raise self.syntax_error()


_FLOAT_OPERATORS = {
    "FloatTrueDiv": operator.truediv,
    "Mul": operator.mul,
    "Add": operator.add,
}
