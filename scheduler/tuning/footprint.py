"""Counts the distinct elements of each buffer that an operation certainly reads.

The counts are lower bounds for any kernel. A read behind a condition (a padded window, one part of
a concatenation) counts where the condition holds; if the condition depends on data, it does not
count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

import numpy as np
import sympy

from scheduler.errors import UserError
from scheduler.ir.bindings import Bindings
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.affine import affine
from scheduler.ir.index.functions import evaluate
from scheduler.ir.operations import Axis, Lowered, OperandView, Operation
from scheduler.ir.values import Call, IndexValue, Load, Masked, Value, children, loads, walk
from scheduler.lowering.interpret import view_value

#: The most loop points that a condition and its indices may depend on; beyond, nothing is counted.
_MAX_POINTS = 2**20

Sizes: TypeAlias = Mapping[sympy.Symbol, int]


@dataclass(frozen=True)
class Guard:
    """A condition of a read: whether it must hold or must not."""

    condition: Value
    holds: bool


def elements_read(operation: Operation, lowered: Lowered, bindings: Bindings) -> dict[str, int]:
    """Return, for each buffer, a lower bound of the distinct elements that the operation reads."""
    counts: dict[str, int] = {}
    if any(evaluate(axis.size, bindings) <= 0 for axis in operation.loops):
        return counts
    stored = (OperandView(operation.points, store.value) for store in operation.results)
    for scope in (*operation.needed_operands, *stored):
        sizes = {axis.var: evaluate(axis.size, bindings) for axis in scope.axes}
        for load, guards in guarded_loads(scope.value):
            if guards:
                elements = guarded_elements(load, guards, sizes, lowered, bindings)
            else:
                elements = distinct_elements(load, sizes, bindings)
            counts[load.buffer] = max(counts.get(load.buffer, 0), elements)
    return counts


def guarded_loads(
    value: Value, guards: tuple[Guard, ...] = ()
) -> Iterator[tuple[Load, tuple[Guard, ...]]]:
    """Yield every read, with all conditions under which its value is needed."""
    if isinstance(value, Load):
        yield value, guards
    if isinstance(value, Masked):
        condition, chosen, other = value.condition, value.value, value.other
    elif isinstance(value, Call) and value.op == "where":
        condition, chosen, other = value.args
    else:
        for child in children(value):
            yield from guarded_loads(child, guards)
        return
    yield from guarded_loads(condition, guards)
    yield from guarded_loads(chosen, (*guards, *_conjuncts(condition)))
    yield from guarded_loads(other, (*guards, Guard(condition, False)))


def _conjuncts(condition: Value) -> Iterator[Guard]:
    if isinstance(condition, Call) and condition.op == "logical_and":
        for part in condition.args:
            yield from _conjuncts(part)
    else:
        yield Guard(condition, True)


def distinct_elements(load: Load, sizes: Sizes, bindings: Bindings) -> int:
    """Return a lower bound of the distinct elements read over all points.

    It counts axes with which the index is certainly one-to-one: in each dimension those whose steps
    are larger than the reach of all smaller steps together, and each axis in the first dimension
    that depends on it. Axes behind a division, a remainder or an indirection count once.
    """
    counted: set[sympy.Symbol] = set()
    total = 1
    for index in load.index:
        # Axes that occur only in sums and products, with their steps; none if anything else varies.
        form = affine(index, sizes)
        steps: dict[sympy.Symbol, int] = {}
        if form is not None and all(
            symbol.name in bindings
            for step in form.coefficients.values()
            for symbol in step.free_symbols
        ):
            steps = {
                axis: abs(evaluate(step, bindings)) for axis, step in form.coefficients.items()
            }
        reach = 0
        for axis, step in sorted(
            steps.items(), key=lambda axis_step: (axis_step[1], str(axis_step[0]))
        ):
            if axis in counted or step <= reach:
                continue
            reach += step * (sizes[axis] - 1)
            counted.add(axis)
            total *= sizes[axis]
        counted |= {axis for axis in sizes if axis in index.free_symbols}
    return total


@dataclass(frozen=True)
class _IndexGroup:
    """Dimensions of an index, and guards, that share their axes with no other dimension."""

    axes: frozenset[sympy.Symbol]
    indices: tuple[Expr, ...] = ()
    guards: tuple[Guard, ...] = ()


def guarded_elements(
    load: Load, guards: Sequence[Guard], sizes: Sizes, lowered: Lowered, bindings: Bindings
) -> int:
    """Return a lower bound of the distinct elements read over all points where the guards hold.

    The index and the guards are split into groups with no axis in common: the count is the product
    of the groups' counts, each taken point by point.
    """
    depends_on_data = any(True for guard in guards for _ in loads(guard.condition))
    if depends_on_data or load.indirect:
        return 0
    total = 1
    for group in _group_indices(load, guards, sizes):
        if not group.guards:
            partial = replace(load, index=group.indices)
            total *= distinct_elements(
                partial, {axis: sizes[axis] for axis in group.axes}, bindings
            )
        elif prod(sizes[axis] for axis in group.axes) > _MAX_POINTS:
            return 0
        else:
            total *= _count_distinct(group, sizes, lowered, bindings)
    return total


def _group_indices(load: Load, guards: Sequence[Guard], sizes: Sizes) -> list[_IndexGroup]:
    groups = [_IndexGroup(frozenset(i.free_symbols & set(sizes)), indices=(i,)) for i in load.index]
    for guard in guards:
        symbols = {
            symbol
            for new_group in walk(guard.condition)
            if isinstance(new_group, IndexValue)
            for symbol in new_group.expr.free_symbols
        }
        groups.append(_IndexGroup(frozenset(symbols & set(sizes)), guards=(guard,)))
    merged: list[_IndexGroup] = []
    for new_group in groups:
        connected = [other for other in merged if other.axes & new_group.axes] + [new_group]
        merged = [other for other in merged if other not in connected]
        merged.append(
            _IndexGroup(
                frozenset().union(*(other.axes for other in connected)),
                tuple(index for other in connected for index in other.indices),
                tuple(guard for other in connected for guard in other.guards),
            )
        )
    return merged


def _count_distinct(group: _IndexGroup, sizes: Sizes, lowered: Lowered, bindings: Bindings) -> int:
    """Count the distinct positions of a group's indices over the points where its guards hold."""
    axes = tuple(Axis(var, sympy.Integer(sizes[var])) for var in sorted(group.axes, key=str))

    def evaluate_at_points(value: Value) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        try:
            return (
                view_value(OperandView(axes, value), {}, lowered, bindings).astype(np.int64).ravel()
            )
        except OverflowError:
            raise UserError("an index exceeds 64 bits") from None

    points = prod(sizes[axis] for axis in group.axes)
    is_read = np.ones(points, dtype=bool)
    for guard in group.guards:
        is_read &= evaluate_at_points(guard.condition).astype(bool) == guard.holds
    if not group.indices:
        return int(is_read.any())
    positions = np.stack(
        [evaluate_at_points(IndexValue(index, DType.I64))[is_read] for index in group.indices]
    )
    return int(np.unique(positions, axis=1).shape[1])
