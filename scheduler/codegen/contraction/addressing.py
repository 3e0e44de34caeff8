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
from scheduler.ir.index.trees import as_index_expr
from scheduler.ir.values import Call, Value

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
    tests = _bounds(operand)
    if tests is None:
        return None
    spans = {axis.var: form.at(axis.var) * (axis.size - 1) for axis in (*operand.row.axes, *k.axes)}
    ends = {var: bounds(span, sizes) for var, span in spans.items()}
    reach = sum(max(abs(low), abs(high)) for low, high in ends.values())
    signed = all(low >= 0 or high <= 0 for low, high in ends.values())
    low_row, low_step = (
        sympy.Add(*(spans[axis.var] for axis in group.axes if ends[axis.var][0] < 0))
        for group in (operand.row, k)
    )
    inner = k.innermost if len(k.axes) > 1 else None
    # A size that is only known from an argument does not count.
    crosses = inner and any(inner.var in test.step.free_symbols for test in tests)
    known = inner is not None and inner.size.is_Integer and not crosses
    return Addressing(
        tests,
        collapsed_stride(form, k) is not None and all(test.step == 0 for test in tests),
        int(inner.size) if inner is not None and known else None,
        signed and (reach + 16) * operand.memory_dtype.itemsize <= MAX_OFFSET_BYTES,
        low_row,
        low_step,
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


def _bounds(operand: Operand) -> tuple[Bound, ...] | None:
    """Return the bounds whose conjunction is the mask; None if it has another form."""
    if operand.condition is None:
        return ()
    edges: dict[Expr, list[Expr | None]] = {}
    for part in conjuncts(operand.condition):
        comparison = edge_comparison(part)
        if comparison is None:
            return None
        index, limit = comparison
        edges.setdefault(index, []).append(limit)
    step_axes = {axis.var for axis in operand.k.axes}
    variables = step_axes | {axis.var for axis in (*operand.batch.axes, *operand.row.axes)}
    found: list[Bound] = []
    for index, limits in edges.items():
        form = affine(index, variables)
        upper = {limit for limit in limits if limit is not None}
        varies = any(not limit.free_symbols.isdisjoint(variables) for limit in upper)
        if form is None or varies or len(upper) > 1:
            return None
        step = sympy.Add(*(var * by for var, by in form.coefficients.items() if var in step_axes))
        row = sympy.Add(
            *(var * by for var, by in form.coefficients.items() if var not in step_axes)
        )
        found.append(Bound(row + form.rest, step, None in limits, next(iter(upper), None)))
    return tuple(found)


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
    index, limit = map(as_index_expr, condition.args)
    if index is None or limit is None or (condition.op == "ge" and limit != 0):
        return None
    return index, limit if condition.op == "lt" else None
