"""Print integer expressions as C++.

Division and modulo follow Python's rules. C++ truncates, which is equivalent if both sides are
known to be non-negative; otherwise the helpers of ``kiln/index.h`` are called.
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy

from scheduler.codegen.printing import index
from scheduler.ir.graph import Expr
from scheduler.ir.index.bounds import INT32_MAX
from scheduler.ir.index.facts import is_nonnegative
from scheduler.ir.index.functions import FloorDiv
from scheduler.ir.index.ranges import ANY_SIZES, Ranges


class IndexPrinter(index.IndexPrinter):
    """``multipliers`` name the numbers with which a kernel divides by sizes (``kiln/divide.h``)."""

    language = "C++"

    def __init__(
        self,
        *,
        wide: bool = False,
        ranges: Ranges = ANY_SIZES,
        names: Mapping[str, str] | None = None,
        multipliers: Mapping[Expr, str] | None = None,
    ) -> None:
        super().__init__(wide=wide, ranges=ranges, names=names)
        self._multipliers = multipliers or {}

    def print_fast_division(self, function: str, dividend: str, divisor: Expr) -> str:
        """Return the ``quotient`` or ``remainder`` of a non-negative dividend by a size that has a
        multiplier."""
        return f"kiln::{function}({dividend}, {self(divisor)}, {self._multipliers[divisor]})"

    def _division(self, expr: Expr) -> tuple[str, int]:
        a, b = expr.args
        if b in self._multipliers and is_nonnegative(a, self._ranges):
            function = "quotient" if isinstance(expr, FloorDiv) else "remainder"
            return self.print_fast_division(function, self(a), b), index.ATOM
        return super()._division(expr)

    def _integer(self, value: int) -> str:
        return f"INT64_C({value})" if abs(value) > INT32_MAX else str(value)

    def _floor_division(self, expr: Expr, a: str, b: str) -> str:
        return f"kiln::{'floor_div' if isinstance(expr, FloorDiv) else 'floor_mod'}({a}, {b})"

    def _binary_min_max(self, expr: Expr, a: str, b: str) -> str:
        return f"kiln::{'index_max' if isinstance(expr, sympy.Max) else 'index_min'}({a}, {b})"
