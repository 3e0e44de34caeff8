"""Integer expressions as C++.

Division and modulo follow Python's rules. C++ truncates, which is the same thing where both
sides are known not to be negative; elsewhere the helpers of ``kiln/index.h`` are called.
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.bounds import INT32_MAX
from scheduler.ir.index.facts import is_nonnegative
from scheduler.ir.index.functions import FloorDiv, Mod
from scheduler.ir.index.ranges import ANY_SIZES, Ranges
from scheduler.text import identifier

_SUM, _PRODUCT, _ATOM = 1, 2, 3


class IndexPrinter:
    """Prints many expressions of one kernel, each only once.

    ``ranges`` say where a division needs no helper; ``names`` gives a symbol another text, and
    must for every size that a model may call what it likes; a variable goes without its dot. With
    ``wide`` every symbol is taken as 64 bits, for callers whose variables are narrower.
    """

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
        """The text of ``expr``; raises ``TypeError`` for what is no integer expression."""
        return self._print(sympy.Integer(expr) if isinstance(expr, int) else expr)[0]

    def atom(self, expr: Expr | int) -> str:
        """The text of ``expr``, in parentheses unless it is a name or a number."""
        return self._at_least(sympy.Integer(expr) if isinstance(expr, int) else expr, _ATOM)

    def _at_least(self, expr: Expr, level: int) -> str:
        text, own = self._print(expr)
        return text if own >= level else f"({text})"

    def _print(self, expr: Expr) -> tuple[str, int]:
        known = self._printed.get(expr)
        if known is None:
            known = self._printed[expr] = self._render(expr)
        return known

    def _render(self, expr: Expr) -> tuple[str, int]:
        if expr.is_Integer:
            return self._integer(int(expr))
        if expr.is_Symbol:
            name = self._names.get(expr.name) or identifier(expr.name.replace(".", ""))
            return (f"int64_t({name})" if self._wide else name), _ATOM
        if isinstance(expr, sympy.Add):
            return self._sum(expr), _SUM
        if isinstance(expr, sympy.Mul):
            return self._product(expr)
        if isinstance(expr, FloorDiv):
            return self._division(expr, "/", "kiln::floor_div")
        if isinstance(expr, Mod):
            return self._division(expr, "%", "kiln::floor_mod")
        if isinstance(expr, sympy.Max | sympy.Min):
            return self._extreme(expr)
        if isinstance(expr, sympy.Pow) and expr.exp.is_Integer and int(expr.exp) > 0:
            return " * ".join([self._at_least(expr.base, _ATOM)] * int(expr.exp)), _PRODUCT
        raise TypeError(f"no C++ for {type(expr).__name__} in an index: {expr}")

    def _integer(self, value: int) -> tuple[str, int]:
        text = f"INT64_C({value})" if abs(value) > INT32_MAX else str(value)
        return text, _ATOM if value >= 0 else _SUM

    def _sum(self, expr: Expr) -> str:
        # As one writes it: `x * 4 + y - 1` rather than `-1 + y + 4 * x`.
        terms = sorted(expr.args, key=_place)
        text = self._at_least(terms[0], _PRODUCT)
        for term in terms[1:]:
            if _negative(term):
                text += f" - {self._at_least(-term, _PRODUCT)}"
            else:
                text += f" + {self._at_least(term, _PRODUCT)}"
        return text

    def _product(self, expr: Expr) -> tuple[str, int]:
        number, factors = expr.as_coeff_mul()
        if not number.is_Integer:
            raise TypeError(f"no C++ for a fraction in an index: {expr}")
        parts = [self._at_least(factor, _ATOM) for factor in factors]
        if number == -1:
            return "-" + " * ".join(parts), _SUM
        if number != 1:
            parts.append(self._at_least(number, _ATOM))
        return " * ".join(parts), _PRODUCT

    def _division(self, expr: Expr, operator: str, helper: str) -> tuple[str, int]:
        a, b = expr.args
        if is_nonnegative(a, self._ranges) and is_nonnegative(b, self._ranges):
            # One step below an atom on purpose: a * (b / c) must keep its parentheses.
            text = f"{self._at_least(a, _ATOM)} {operator} {self._at_least(b, _ATOM)}"
            return text, _PRODUCT
        return f"{helper}({self(a)}, {self(b)})", _ATOM

    def _extreme(self, expr: Expr) -> tuple[str, int]:
        helper = "kiln::index_max" if isinstance(expr, sympy.Max) else "kiln::index_min"
        text, *others = sorted(self(arg) for arg in expr.args)
        for other in others:
            text = f"{helper}({text}, {other})"
        return text, _ATOM


def _place(term: Expr) -> tuple[bool, bool, bool]:
    return _negative(term), bool(term.is_Integer), not isinstance(term, sympy.Mul)


def _negative(term: Expr) -> bool:
    return bool(term.could_extract_minus_sign())
