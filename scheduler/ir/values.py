"""What a kernel computes at one point of its loops: a small tree of loads, constants and calls.

Views cost nothing here: a view is a change of the index expressions of a ``Load``. Trees are
frozen and hashable; they know no C++ (codegen prints them) and no NumPy (the reference runs the
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
    axis is the caller's fault; kernels clamp it so that no memory is touched outside the buffer.
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

    ``node`` is the graph node that asks for it, where that is known: it goes beside the line that
    computes it and is no part of what is computed.
    """

    op: str
    args: tuple[Value, ...]
    dtype: DType
    node: str = field(default="", compare=False)


@dataclass(frozen=True)
class Cast:
    """Conversion to another element type; it rounds when the type is narrower.

    ``decides``: what reads it decides by what it is rounded to, so that the reference rounds too,
    which holds floats in float64 otherwise.
    """

    value: Value
    dtype: DType
    node: str = field(default="", compare=False)
    decides: bool = field(default=False, metadata={"later": True})

    @property
    def rounds(self) -> bool:
        """Whether the value that kernels hold is another one afterwards."""
        source = self.value.dtype
        return source is not self.dtype and self.dtype is not source.compute_dtype


@dataclass(frozen=True)
class Masked:
    """``value`` where ``condition`` holds, else ``other``; elsewhere nothing in it is read."""

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


_NODES_PER_FUEL = 16  # parts of a tree that are visited in a step
_LEAVES = (Const, IndexValue, Accumulator)


def children(value: Value) -> tuple[Value, ...]:
    """The direct parts of a tree, those behind indirect indices included."""
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
    """Every part of a tree, itself first, then its children's from the first on."""
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
    """Every read in a tree."""
    return (part for part in walk(value) if isinstance(part, Load))


def rebuild(value: Value, change: Callable[[Value], Value | None]) -> Value:
    """The tree with parts exchanged, outermost first: where ``change`` gives None, go deeper."""
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
