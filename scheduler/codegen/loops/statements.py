"""Members of a group as statements on one set of axes.

Members may name and factor their axes differently as long as they make the same steps: a member's
variable becomes an expression over the group's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.facts import is_equal
from scheduler.ir.index.functions import FloorDiv, Mod
from scheduler.ir.index.substitute import Substitution, substitute_expr
from scheduler.ir.operations import (
    Axis,
    GroupKind,
    Pointwise,
    Reduction,
    ReductionKind,
    Scan,
    Store,
    numel,
)
from scheduler.ir.values import Value

_ZERO = sympy.Integer(0)


@dataclass(frozen=True)
class Statement:
    """One member on the nest's axes.

    ``kind`` is None for a pointwise member, whose ``value`` is what it stores. With ``inner`` it is
    computed at each step of the inner axes rather than once per outer point.
    """

    name: str
    kind: ReductionKind | None
    value: Value
    accumulate: DType
    store: Store
    inner: bool

    def map_values(self, change: Callable[[Value], Value]) -> Statement:
        """Return a copy whose trees are mapped by ``change``."""
        stored = change(self.store.value)
        value = stored if self.value is self.store.value else change(self.value)
        if stored is self.store.value and value is self.value:
            return self
        return replace(self, value=value, store=replace(self.store, value=stored))


def axes_of(
    members: Sequence[Pointwise | Reduction | Scan],
) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
    for member in members:
        if member.group_kind is not GroupKind.POINTWISE:
            return member.nest
    # The finest factoring of a pointwise group: the others then need no division.
    finest = max(members, key=lambda member: len(member.axes))
    return finest.axes, ()


def to_statement(
    member: Pointwise | Reduction | Scan, outer: tuple[Axis, ...], inner: tuple[Axis, ...]
) -> Statement:
    """Return a member as a statement on the nest's own axes."""
    store = member.store if member.store.nodes else replace(member.store, nodes=member.nodes)
    reindexing = _match_axes(member.axes, outer)
    if isinstance(member, Pointwise):
        value = store.value
        statement = Statement(member.name, None, value, value.dtype, store, inner=False)
        if reindexing is not None:
            return _substitute(statement, reindexing)
        reindexing = _match_axes(member.axes, (*outer, *inner))
        if reindexing is None:
            raise ValueError(f"{member.name} does not have the axes of its group")
        return replace(_substitute(statement, reindexing), inner=True)
    inner_reindexing = _match_axes(member.nest[1], inner)
    if reindexing is None or inner_reindexing is None:
        raise ValueError(f"{member.name} does not have the axes of its group")
    statement = Statement(
        member.name, member.kind, member.value, member.accumulate, store, inner=True
    )
    return _substitute(statement, {**reindexing, **inner_reindexing})


def _match_axes(
    member_axes: tuple[Axis, ...], axes: tuple[Axis, ...]
) -> dict[sympy.Symbol, Expr] | None:
    """Return each variable of a member's axes over ``axes``, or None if they make a different
    number of steps."""
    if [axis.size for axis in member_axes] == [axis.size for axis in axes]:
        return {
            member_axis.var: axis.var for member_axis, axis in zip(member_axes, axes, strict=True)
        }
    steps = numel(member_axes)
    if steps == 0 or not is_equal(steps, numel(axes)):
        return None  # empty loops match only if every one is empty
    flat: Expr = _ZERO
    for axis in axes:
        flat = flat * axis.size + axis.var
    reindexing: dict[sympy.Symbol, Expr] = {}
    step: Expr = sympy.Integer(1)
    for position, axis in reversed(list(enumerate(member_axes))):
        quotient = FloorDiv(flat, step)
        reindexing[axis.var] = quotient if position == 0 else Mod(quotient, axis.size)
        step = step * axis.size
    return reindexing


def _substitute(statement: Statement, reindexing: dict[sympy.Symbol, Expr]) -> Statement:
    reindexing = {old: new for old, new in reindexing.items() if old != new}
    if not reindexing:
        return statement
    substitution = Substitution(reindexing)
    stored = substitution.apply(statement.store.value)
    value = stored if statement.kind is None else substitution.apply(statement.value)
    index = tuple(substitute_expr(part, reindexing) for part in statement.store.index)
    return replace(
        statement, value=value, store=replace(statement.store, index=index, value=stored)
    )


def drop_unit_axes(statement: Statement, axes: tuple[Axis, ...]) -> Statement:
    return _substitute(statement, {axis.var: _ZERO for axis in axes if axis.size == 1})
