"""Integer expressions of CuteDSL sources: in kernels, and those that their build evaluates."""

from __future__ import annotations

import sympy

from scheduler.codegen.printing import index
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv


class IndexPrinter(index.IndexPrinter):
    """Prints Python over the kernel's integers, whose ``//`` floors and whose ``%`` is C's."""

    language = "CuteDSL"
    division = "//"
    wide_symbol = "cutlass.Int64({})"

    def _floor_division(self, expr: Expr, a: str, b: str) -> str:
        if isinstance(expr, FloorDiv):
            return f"(({a}) // ({b}))"
        return f"floor_mod({a}, {b})"

    def _binary_min_max(self, expr: Expr, a: str, b: str) -> str:
        return f"cutlass.{'max' if isinstance(expr, sympy.Max) else 'min'}({a}, {b})"


class CountPrinter(index.IndexPrinter):
    """Prints C over the scalar arguments, for ``POINTS``, ``ELEMENTS`` and ``WORKSPACE``: the build
    evaluates them in 64 bits with C's division."""

    language = "C"

    def _floor_division(self, expr: Expr, a: str, b: str) -> str:
        remainder = f"(({a}) % ({b}))"
        other_sign = f"(({remainder} < 0) != (({b}) < 0) ? 1 : 0)"
        correction = f"({remainder} != 0 ? {other_sign} : 0)"
        if isinstance(expr, FloorDiv):
            return f"(({a}) / ({b}) - {correction})"
        return f"({remainder} + {correction} * ({b}))"

    def _binary_min_max(self, expr: Expr, a: str, b: str) -> str:
        return f"(({a}) {'>' if isinstance(expr, sympy.Max) else '<'} ({b}) ? ({a}) : ({b}))"
