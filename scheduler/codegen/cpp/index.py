"""Integer expressions as C++.

Division and modulo follow Python's rules. C++ truncates, which is the same thing where both
sides are known not to be negative; elsewhere the helpers of ``kiln/index.h`` are called.
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy

from scheduler.codegen.printing import index
from scheduler.ir.graph import Expr
from scheduler.ir.index.bounds import INT32_MAX
from scheduler.ir.index.functions import FloorDiv
from scheduler.ir.index.ranges import ANY_SIZES, Ranges


class IndexPrinter(index.IndexPrinter):
    """With ``wide`` every symbol is taken as 64 bits, for callers whose variables are narrower."""

    language = "C++"

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
        return f"int64_t({name})" if self._wide else name

    def _integer(self, value: int) -> str:
        return f"INT64_C({value})" if abs(value) > INT32_MAX else str(value)

    def _operator(self, expr: Expr) -> str:
        return "/" if isinstance(expr, FloorDiv) else "%"

    def _floored(self, expr: Expr, a: str, b: str) -> str:
        return f"kiln::{'floor_div' if isinstance(expr, FloorDiv) else 'floor_mod'}({a}, {b})"

    def _extremum(self, expr: Expr, a: str, b: str) -> str:
        return f"kiln::{'index_max' if isinstance(expr, sympy.Max) else 'index_min'}({a}, {b})"
