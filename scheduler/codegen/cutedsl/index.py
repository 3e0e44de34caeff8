"""Integer expressions of CuteDSL sources: in kernels, and those that their build evaluates."""

from __future__ import annotations

from collections.abc import Mapping

import sympy

from scheduler.codegen.printing import index
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv
from scheduler.ir.index.ranges import ANY_SIZES, Ranges


class IndexPrinter(index.IndexPrinter):
    """Prints Python over the kernel's integers, whose ``//`` floors and whose ``%`` is C's.

    With ``wide`` every symbol is treated as 64 bits, for callers whose variables are narrower.
    """

    language = "CuteDSL"

    def __init__(
        self,
        *,
        wide: bool = False,
        ranges: Ranges = ANY_SIZES,
        names: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(ranges=ranges, names=names)
        self._wide = wide

    def _symbol(self, name: str) -> str:
        return f"cutlass.Int64({name})" if self._wide else name

    def _integer(self, value: int) -> str:
        return str(value)

    def _operator(self, expr: Expr) -> str:
        return "//" if isinstance(expr, FloorDiv) else "%"

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

    def _symbol(self, name: str) -> str:
        return name

    def _integer(self, value: int) -> str:
        return str(value)

    def _operator(self, expr: Expr) -> str:
        return "/" if isinstance(expr, FloorDiv) else "%"

    def _floor_division(self, expr: Expr, a: str, b: str) -> str:
        rest = f"(({a}) % ({b}))"
        other_sign = f"(({rest} < 0) != (({b}) < 0) ? 1 : 0)"
        below = f"({rest} != 0 ? {other_sign} : 0)"
        if isinstance(expr, FloorDiv):
            return f"(({a}) / ({b}) - {below})"
        return f"({rest} + {below} * ({b}))"

    def _binary_min_max(self, expr: Expr, a: str, b: str) -> str:
        return f"(({a}) {'>' if isinstance(expr, sympy.Max) else '<'} ({b}) ? ({a}) : ({b}))"
