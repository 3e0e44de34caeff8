"""An operand's address and mask in two parts: the row's part, computed once per block, and the part
of a step along k, computed once per step for all rows.

Both are sums, over the axes of (batch, row) and over those of k; a window's mask compares such sums
with the input's sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sympy

from scheduler.codegen.contraction.indices import collapsed_stride
from scheduler.codegen.contraction.operand import Operand
from scheduler.ir.graph import Expr
from scheduler.ir.index.affine import affine
from scheduler.ir.index.bounds import bounds
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.values import Call, Const, IndexValue, Value

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
    form, k = operand.form, operand.k
    if operand.load is None or form is None:
        return None
    mask_bounds = _bounds(operand)
    if mask_bounds is None:
        return None
    spans = {axis.var: form.at(axis.var) * (axis.size - 1) for axis in (*operand.row.axes, *k.axes)}
    offset_ranges = {var: bounds(span, sizes) for var, span in spans.items()}
    max_offset = sum(max(abs(low), abs(high)) for low, high in offset_ranges.values())
    has_fixed_signs = all(low >= 0 or high <= 0 for low, high in offset_ranges.values())
    low_row, low_step = (
        sympy.Add(*(spans[axis.var] for axis in group.axes if offset_ranges[axis.var][0] < 0))
        for group in (operand.row, k)
    )
    inner = k.innermost if len(k.axes) > 1 else None
    # A size that is only known from an argument does not count.
    crosses_bound = inner and any(inner.var in bound.step.free_symbols for bound in mask_bounds)
    has_constant_size = inner is not None and inner.size.is_Integer and not crosses_bound
    return Addressing(
        mask_bounds,
        collapsed_stride(form, k) is not None and all(bound.step == 0 for bound in mask_bounds),
        int(inner.size) if inner is not None and has_constant_size else None,
        has_fixed_signs and (max_offset + 16) * operand.memory_dtype.itemsize <= MAX_OFFSET_BYTES,
        low_row,
        low_step,
    )


def has_32_bit_offsets(operand: Operand, sizes: Ranges) -> bool:
    """Whether every element's offset from the first one, over all axes, is between 0 and 2 GiB."""
    form = operand.form
    if form is None:
        return False
    axes = (*operand.batch.axes, *operand.row.axes, *operand.k.axes)
    offset_ranges = [bounds(form.at(axis.var) * (axis.size - 1), sizes) for axis in axes]
    max_offset = sum(high for _, high in offset_ranges)
    below_2_gib = (max_offset + 16) * operand.memory_dtype.itemsize <= MAX_OFFSET_BYTES
    return below_2_gib and all(low >= 0 for low, _ in offset_ranges)


def _bounds(operand: Operand) -> tuple[Bound, ...] | None:
    """Return the bounds whose conjunction is the mask; None if it has another form."""
    if operand.condition is None:
        return ()
    limits_by_index: dict[Expr, list[Expr | None]] = {}
    for condition in conjuncts(operand.condition):
        comparison = edge_comparison(condition)
        if comparison is None:
            return None
        index, limit = comparison
        limits_by_index.setdefault(index, []).append(limit)
    step_axes = {axis.var for axis in operand.k.axes}
    variables = step_axes | {axis.var for axis in (*operand.batch.axes, *operand.row.axes)}
    mask_bounds: list[Bound] = []
    for index, limits in limits_by_index.items():
        form = affine(index, variables)
        upper_limits = {limit for limit in limits if limit is not None}
        limit_varies = any(not limit.free_symbols.isdisjoint(variables) for limit in upper_limits)
        if form is None or limit_varies or len(upper_limits) > 1:
            return None
        terms = {var: var * coefficient for var, coefficient in form.coefficients.items()}
        step = sympy.Add(*(term for var, term in terms.items() if var in step_axes))
        row = sympy.Add(*(term for var, term in terms.items() if var not in step_axes))
        mask_bounds.append(
            Bound(row + form.rest, step, None in limits, next(iter(upper_limits), None))
        )
    return tuple(mask_bounds)


def conjuncts(condition: Value) -> Iterator[Value]:
    """Yield the conditions whose conjunction is ``condition``."""
    if isinstance(condition, Call) and condition.op in ("logical_and", "bitwise_and"):
        for part in condition.args:
            yield from conjuncts(part)
    else:
        yield condition


def edge_comparison(condition: Value) -> tuple[Expr, Expr | None] | None:
    """Return the index and the limit of ``index < limit``, with None for that of ``index >= 0``;
    None for any other condition."""
    if not isinstance(condition, Call) or condition.op not in ("ge", "lt"):
        return None
    index, limit = map(_index_expression, condition.args)
    if index is None or limit is None or (condition.op == "ge" and limit != 0):
        return None
    return index, limit if condition.op == "lt" else None


def _index_expression(value: Value) -> Expr | None:
    """Return a value that is an integer expression of sizes and axes; None for any other, also for
    arithmetic in a type that may overflow."""
    if isinstance(value, IndexValue):
        return value.expr
    if isinstance(value, Const) and isinstance(value.value, int):
        return sympy.Integer(value.value)
    return None
