"""The columns that the rows of a block see, as far as indices determine them: causal attention, and
masks that compare row and column numbers (sliding windows). Tiles without a visible column are
skipped, and only partly visible tiles are masked."""

from __future__ import annotations

from dataclasses import dataclass

import sympy

from scheduler.codegen.contraction.addressing import conjuncts
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.affine import affine
from scheduler.ir.index.trees import as_index_expr
from scheduler.ir.operations import Attention
from scheduler.ir.values import Call, Value

_ZERO = sympy.Integer(0)
# A comparison holds if sign * (left - right) + more <= 0.
_COMPARISONS = {"le": (1, 0), "lt": (1, 1), "ge": (-1, 0), "gt": (-1, 1)}


@dataclass(frozen=True)
class Limit:
    """``slope * row + offset``: the first column that a row sees, or (``upper``) its last one."""

    upper: bool
    slope: int
    offset: Expr

    def at(self, row: sympy.Symbol) -> Expr:
        """Return the limit of that row."""
        return self.slope * row + self.offset

    def outermost(self, first: sympy.Symbol, last: sympy.Symbol) -> Expr:
        """Return the furthest column that any row from ``first`` to ``last`` sees."""
        return self.at(last if (self.slope > 0) == self.upper else first)

    def innermost(self, first: sympy.Symbol, last: sympy.Symbol) -> Expr:
        """Return the furthest column that all rows from ``first`` to ``last`` see."""
        return self.at(first if (self.slope > 0) == self.upper else last)


@dataclass(frozen=True)
class Window:
    """The limits that hold for every row; ``is_complete`` if they describe the mask completely."""

    limits: tuple[Limit, ...]
    is_complete: bool

    @property
    def lower(self) -> tuple[Limit, ...]:
        """Return the limits that are first columns."""
        return tuple(limit for limit in self.limits if not limit.upper)

    @property
    def upper(self) -> tuple[Limit, ...]:
        """Return the limits that are last columns."""
        return tuple(limit for limit in self.limits if limit.upper)

    @staticmethod
    def create(operation: Attention) -> Window:
        """Return the limits that are known for an operation's rows."""
        causal = (Limit(True, 1, _ZERO),) if operation.causal else ()
        mask = operation.mask
        if mask is None:
            return Window(causal, is_complete=True)
        if mask.dtype is not DType.BOOL:
            return Window(causal, is_complete=False)
        limits = [_limit(part, operation) for part in conjuncts(mask)]
        known_limits = tuple(limit for limit in limits if limit is not None)
        return Window((*causal, *known_limits), is_complete=len(known_limits) == len(limits))


def _limit(value: Value, operation: Attention) -> Limit | None:
    """Return a condition's limit on the column; None if it does not have that form."""
    if not isinstance(value, Call) or value.op not in _COMPARISONS:
        return None
    left_index, right_index = (as_index_expr(part) for part in value.args)
    if left_index is None or right_index is None:
        return None
    sign, shift = _COMPARISONS[value.op]
    row, column = operation.row.var, operation.column.var
    row_column_form = affine(sign * (left_index - right_index) + shift, {row, column})
    if (
        row_column_form is None
        or abs(row_column_form.at(column)) != 1
        or not row_column_form.at(row).is_Integer
    ):
        return None
    upper = row_column_form.at(column) == 1
    direction = -1 if upper else 1
    return Limit(upper, direction * int(row_column_form.at(row)), direction * row_column_form.rest)
