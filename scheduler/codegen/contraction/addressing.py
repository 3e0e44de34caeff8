"""An operand's address and mask in two parts: the row's part, computed once per block, and the part
of a step along k, computed once per step for all rows.

Both are sums, over the axes of (batch, row) and over those of k; a window's mask compares such sums
with the input's sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sympy

from scheduler.codegen.contraction.indices import IndexGroup, collapsed_stride
from scheduler.codegen.contraction.operand import Operand
from scheduler.ir.graph import Expr
from scheduler.ir.index.affine import affine
from scheduler.ir.index.bounds import bounds
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.values import Call, Const, IndexValue, Value

_ZERO = sympy.Integer(0)
#: Half of the bytes that an unsigned 32-bit offset reaches: offsets from here on are outside.
MAX_OFFSET_BYTES = 2**31 - 16


@dataclass(frozen=True)
class Bound:
    """``row + step`` is at least 0 if ``nonnegative``, and less than ``limit`` if that is set."""

    row: Expr
    step: Expr
    nonnegative: bool
    limit: Expr | None


@dataclass(frozen=True)
class Addressing:
    """``flat``: along k an element moves by one stride of the flat index.

    Otherwise ``inner`` is the number of elements along the innermost axis of k, within which it
    moves by one stride and crosses no bound; None if that is not a number in the source.

    ``is_32_bit``: every offset that the row and the step add is below 2 GiB. ``low_row`` and
    ``low_step`` are the lowest offsets that they add, 0 or less.
    """

    bounds: tuple[Bound, ...]
    flat: bool
    inner: int | None
    is_32_bit: bool
    low_row: Expr
    low_step: Expr


def analyse_addressing(operand: Operand, sizes: Ranges) -> Addressing | None:
    """Return the addressing; None if the operand is computed, or its mask is not made of bounds on
    such sums."""
    form = operand.form
    if operand.load is None or form is None:
        return None
    tests = _bounds(operand)
    if tests is None:
        return None
    coefficients = {axis.var: form.at(axis.var) for axis in (*operand.row.axes, *operand.k.axes)}
    spans = {
        axis.var: coefficients[axis.var] * (axis.size - 1)
        for axis in (*operand.row.axes, *operand.k.axes)
    }
    ends = {var: bounds(span, sizes) for var, span in spans.items()}
    reach = sum(max(abs(low), abs(high)) for low, high in ends.values())
    signed = all(low >= 0 or high <= 0 for low, high in ends.values())
    return Addressing(
        tests,
        collapsed_stride(form, operand.k) is not None and all(test.step == 0 for test in tests),
        _inner_extent(operand.k, tests),
        signed and (reach + 16) * operand.memory_dtype.itemsize <= MAX_OFFSET_BYTES,
        _lowest_offset(operand.row, spans, ends),
        _lowest_offset(operand.k, spans, ends),
    )


def has_32_bit_offsets(operand: Operand, sizes: Ranges) -> bool:
    """Whether every element's offset from the first one, over all axes, is between 0 and 2 GiB."""
    form = operand.form
    if form is None:
        return False
    axes = (*operand.batch.axes, *operand.row.axes, *operand.k.axes)
    ends = [bounds(form.at(axis.var) * (axis.size - 1), sizes) for axis in axes]
    reach = sum(high for _, high in ends)
    within = (reach + 16) * operand.memory_dtype.itemsize <= MAX_OFFSET_BYTES
    return within and all(low >= 0 for low, _ in ends)


def _inner_extent(k: IndexGroup, tests: tuple[Bound, ...]) -> int | None:
    inner = k.innermost
    if len(k.axes) == 1 or inner is None or not inner.size.is_Integer:
        return None  # a size that is only known from an argument
    return None if any(inner.var in test.step.free_symbols for test in tests) else int(inner.size)


def _lowest_offset(
    group: IndexGroup,
    spans: Mapping[sympy.Symbol, Expr],
    ends: Mapping[sympy.Symbol, tuple[float, float]],
) -> Expr:
    return sympy.Add(*(spans[axis.var] for axis in group.axes if ends[axis.var][0] < 0))


def _bounds(operand: Operand) -> tuple[Bound, ...] | None:
    if operand.condition is None:
        return ()
    step_axes = {axis.var for axis in operand.k.axes}
    variables = step_axes | {axis.var for axis in (*operand.batch.axes, *operand.row.axes)}
    found: dict[Expr, Bound] = {}
    for part in _conjuncts(operand.condition):
        compared = _parse_comparison(part, variables)
        if compared is None:
            return None
        value, limit = compared
        form = affine(value, variables)
        if form is None:
            return None
        step = _sum(form.coefficients, (var for var in form.coefficients if var in step_axes))
        row = _sum(form.coefficients, (v for v in form.coefficients if v not in step_axes))
        before = found.get(value)
        if limit is not None and before is not None and before.limit not in (None, limit):
            return None
        found[value] = Bound(
            row + form.rest,
            step,
            limit is None or (before is not None and before.nonnegative),
            limit if limit is not None else before.limit if before else None,
        )
    return tuple(found.values())


def _sum(coefficients: Mapping[sympy.Symbol, Expr], variables: Iterable[sympy.Symbol]) -> Expr:
    return sympy.Add(*(coefficients[var] * var for var in variables))


def _conjuncts(value: Value) -> list[Value]:
    if isinstance(value, Call) and value.op == "logical_and":
        return [part for arg in value.args for part in _conjuncts(arg)]
    return [value]


def _parse_comparison(
    value: Value, variables: set[sympy.Symbol]
) -> tuple[Expr, Expr | None] | None:
    """Return the expression and the limit (or None) of ``>= 0`` or ``< limit``."""
    if not isinstance(value, Call) or value.op not in ("ge", "lt"):
        return None
    left, right = map(index_expression, value.args)
    if left is None or right is None or not right.free_symbols.isdisjoint(variables):
        return None
    if value.op == "lt":
        return left, right
    return (left, None) if right == _ZERO else None


def index_expression(value: Value) -> Expr | None:
    """Return a value that is an integer expression of sizes and axes; None for any other."""
    if isinstance(value, IndexValue):
        return value.expr
    if isinstance(value, Const) and isinstance(value.value, int):
        return sympy.Integer(value.value)
    return None
