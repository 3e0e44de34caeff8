"""The value that a kernel computes at one point: a small tree of loads, constants and calls.

Views are free: a view only changes the index expressions of a ``Load``. Trees are frozen and
hashable; they are independent of C++ (codegen prints them) and of NumPy (the reference runs the
graph's own ops).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import sympy

from scheduler.fuel import spend_fuel
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr


@dataclass(frozen=True)
class Indirect:
    """A loop-invariant symbol inside a ``Load``'s index whose value is read from a tensor.

    ``value`` is an integer tree. A negative value counts from the end of an axis of ``size``
    elements, as in Python (``wrap`` False: it is known not to be negative). A value outside the
    axis is a caller's error; kernels clamp it so that no memory outside the buffer is accessed.
    """

    symbol: sympy.Symbol
    value: Value
    size: Expr
    wrap: bool = True


@dataclass(frozen=True)
class Load:
    """Read one element: ``index`` has one expression for each dimension of the buffer."""

    buffer: str
    index: tuple[Expr, ...]
    dtype: DType
    indirect: tuple[Indirect, ...] = ()


@dataclass(frozen=True)
class Const:
    """A literal. ``value`` may be inf or nan."""

    value: int | float | complex | bool
    dtype: DType


@dataclass(frozen=True)
class IndexValue:
    """An integer expression of sizes and loop variables, as a value (arange, a size)."""

    expr: Expr
    dtype: DType


@dataclass(frozen=True)
class Call:
    """A pointwise function of ``ir/pointwise.py``; ``dtype`` is the result's.

    ``node`` is the graph node that it implements, if known: it is written as a comment beside the
    line, and is not part of the value.
    """

    op: str
    args: tuple[Value, ...]
    dtype: DType
    node: str = field(default="", compare=False)


@dataclass(frozen=True)
class Cast:
    """Conversion to another element type; it rounds when the type is narrower.

    ``decides``: its readers depend on the exact rounding (such as comparisons), so that the
    reference rounds too, which otherwise keeps floats in float64.
    """

    value: Value
    dtype: DType
    node: str = field(default="", compare=False)
    decides: bool = field(default=False, metadata={"later": True})

    @property
    def rounds(self) -> bool:
        """Whether the cast changes the value that kernels hold."""
        source = self.value.dtype
        return source is not self.dtype and self.dtype is not source.compute_dtype


@dataclass(frozen=True)
class Masked:
    """``value`` where ``condition`` holds, else ``other``; ``value`` is not read elsewhere."""

    condition: Value
    value: Value
    other: Value

    @property
    def dtype(self) -> DType:
        return self.value.dtype


@dataclass(frozen=True)
class Accumulator:
    """The result of the template (or of an earlier reduction stage, by name) at this point."""

    dtype: DType
    name: str = "acc"


Value: TypeAlias = Load | Const | IndexValue | Call | Cast | Masked | Accumulator


_NODES_PER_FUEL = 16  # tree nodes visited per step
_LEAVES = (Const, IndexValue, Accumulator)


def children(value: Value) -> tuple[Value, ...]:
    """Return the direct children of a tree, including those in indirect indices."""
    if isinstance(value, Call):
        return value.args
    if isinstance(value, Cast):
        return (value.value,)
    if isinstance(value, Masked):
        return (value.condition, value.value, value.other)
    if isinstance(value, Load):
        return tuple(indirect.value for indirect in value.indirect)
    return ()


def walk(value: Value) -> Iterator[Value]:
    """Yield every node of a tree in pre-order."""
    spend_fuel()
    pending = [value]
    visited = 0
    while pending:
        part = pending.pop()
        visited += 1
        if visited % _NODES_PER_FUEL == 0:
            spend_fuel()
        yield part
        if not isinstance(part, _LEAVES):
            pending.extend(reversed(children(part)))


def loads(value: Value) -> Iterator[Load]:
    """Return all loads of a tree."""
    return (part for part in walk(value) if isinstance(part, Load))


def rebuild(value: Value, change: Callable[[Value], Value | None]) -> Value:
    """Replace nodes of a tree, outermost first; where ``change`` returns None, descend."""
    spend_fuel()
    changed = change(value)
    if changed is not None:
        return changed
    if isinstance(value, Call):
        return replace(value, args=tuple(rebuild(arg, change) for arg in value.args))
    if isinstance(value, Cast):
        return replace(value, value=rebuild(value.value, change))
    if isinstance(value, Masked):
        return Masked(
            rebuild(value.condition, change),
            rebuild(value.value, change),
            rebuild(value.other, change),
        )
    if isinstance(value, Load) and value.indirect:
        return replace(
            value,
            indirect=tuple(replace(i, value=rebuild(i.value, change)) for i in value.indirect),
        )
    return value
