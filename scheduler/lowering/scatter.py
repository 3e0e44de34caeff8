"""Writes to places that data decide, over the one operation that makes them: ``Scatter``.

Values that are combined (added, multiplied, the greatest, the least) are combined in a type that
memory has atomic operations for. Of values that overwrite each other the last one stays, as in
torch on a CPU: the greatest number of a source that reaches a place is found by a scatter, and
what it brings is read from there, so that the result is the same in every run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.bounds import INT32_MAX, bounds
from scheduler.ir.index.functions import FloorDiv, Mod
from scheduler.ir.index.simplify import product
from scheduler.ir.operations import ATOMIC, ReductionKind
from scheduler.ir.values import Value
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.tensor import Index, Places, Reader, Tensor

_BOOL_KINDS = {ReductionKind.SUM: ReductionKind.MAX, ReductionKind.PROD: ReductionKind.MIN}


@dataclass(frozen=True)
class Sources:
    """What is written: a value at each point of ``size``, to ``places`` of the result, where
    ``condition`` holds (None: everywhere)."""

    size: tuple[Expr, ...]
    places: Places
    value: Reader
    condition: Reader | None = None


def combine_dtype(dtype: DType) -> DType:
    """The type in which values of a type are combined: f32 for narrower floats (rounded once, at
    the end), i32 for small integers and booleans, i64 for unsigned ones of its size."""
    wide = dtype.compute_dtype
    return wide if wide in ATOMIC else DType.I64 if wide.itemsize >= 4 else DType.I32


def combine(
    b: Builder, self: Tensor, kind: ReductionKind, sources: Sources, begin: Reader | None = None
) -> Tensor:
    """``self`` with every source combined into its place; ``begin`` in place of ``self``'s own
    elements. The elements are not rounded to the 16-bit floats yet: they are so when stored."""
    if self.dtype.is_complex:
        return _combined_parts(b, self, kind, sources, begin or self.at)
    held = combine_dtype(self.dtype)
    if self.dtype is DType.U64 and kind in (ReductionKind.MAX, ReductionKind.MIN):
        raise Unsupported("the greatest or least of unsigned integers of 64 bits at one place")
    if self.dtype is DType.BOOL:
        kind = _BOOL_KINDS.get(kind, kind)

    def wide(read: Reader) -> Reader:
        return lambda i: trees.upcast(read(i), held)

    made = b.scatter(
        self.size,
        held,
        kind,
        wide(begin or self.at),
        sources.size,
        sources.places,
        wide(sources.value),
        sources.condition,
    )
    if held is self.dtype:
        return made
    return Tensor(self.size, self.dtype, lambda i: from_combine_dtype(made.at(i), self.dtype))


def _combined_parts(
    b: Builder, self: Tensor, kind: ReductionKind, sources: Sources, begin: Reader
) -> Tensor:
    """Sums of complex numbers, each part of them by itself."""
    if kind is not ReductionKind.SUM:
        raise Unsupported("complex numbers are added up at one place, not multiplied")
    dtype = self.dtype

    def part(name: str, read: Reader) -> Reader:
        return lambda i: trees.call(name, trees.upcast(read(i), dtype))

    real, imaginary = (
        combine(
            b,
            Tensor(self.size, dtype.real, part(name, self.at)),
            kind,
            replace(sources, value=part(name, sources.value)),
            part(name, begin),
        )
        for name in ("real", "imag")
    )
    return Tensor(self.size, dtype, lambda i: trees.call("complex", real.at(i), imaginary.at(i)))


def from_combine_dtype(value: Value, dtype: DType) -> Value:
    """A value of the type in which it was combined, as kernels hold its own."""
    if dtype is DType.BOOL:
        return trees.call("ne", value, trees.const(0, value.dtype))
    return trees.upcast(value, dtype)


def neutral_element(kind: ReductionKind, dtype: DType) -> Value:
    """What changes nothing by being combined with a value of a type."""
    if kind in (ReductionKind.SUM, ReductionKind.PROD):
        return trees.const(int(kind is ReductionKind.PROD), dtype)
    greatest = kind is ReductionKind.MIN
    if dtype is DType.BOOL:
        return trees.const(greatest, dtype)
    if dtype.is_float:
        return trees.const(float("inf" if greatest else "-inf"), dtype)
    bits = 8 * dtype.itemsize
    low = 0 if dtype.is_unsigned else -(2 ** (bits - 1))
    return trees.const(low + 2**bits - 1 if greatest else low, dtype)


def count_sources(b: Builder, size: tuple[Expr, ...], sources: Sources) -> Tensor:
    """How many sources reach each place."""
    dtype = _numbering(product(sources.size), b)
    return b.scatter(
        size,
        dtype,
        ReductionKind.SUM,
        lambda _: trees.const(0, dtype),
        sources.size,
        sources.places,
        lambda _: trees.const(1, dtype),
        sources.condition,
    )


def last_source(
    b: Builder,
    size: tuple[Expr, ...],
    sources: Sources,
    number: Callable[[Index], Expr] | None = None,
    count: Expr | None = None,
) -> Tensor:
    """The number of the last source that reaches each place, -1 for none: its row-major one, or
    ``number`` of its index, which is below ``count``."""
    numbered = number or (lambda i: flatten_index(i, sources.size))
    dtype = _numbering(product(sources.size) if count is None else count, b)
    return b.scatter(
        size,
        dtype,
        ReductionKind.MAX,
        lambda _: trees.const(-1, dtype),
        sources.size,
        sources.places,
        lambda i: trees.upcast(trees.index_value(numbered(i)), dtype),
        sources.condition,
    )


def overwrite(
    b: Builder,
    self: Tensor,
    keys: Sequence[int],
    size: tuple[Expr, ...],
    places: Callable[[Index], Sequence[Expr | Value]],
    value: Callable[[Index, Index], Value],
) -> Tensor:
    """``self`` with what the last source that reaches an element brings.

    Sources are numbered by ``size``; ``places`` are theirs in the dimensions ``keys`` of ``self``,
    whole slices of whose other dimensions are written. ``value`` is what a source brings to an
    index of ``self``.
    """
    extents = tuple(self.size[d] for d in keys)
    winner = last_source(
        b, extents, Sources(size, places, value=lambda _: trees.const(0, DType.I64))
    )

    def read(i: Index) -> Value:
        key = tuple(i[d] for d in keys)
        number = winner.at(key)
        reached = trees.call("ge", number, trees.const(0, number.dtype))
        brought = b.indirect(
            winner, key, product(size), lambda n: value(unflatten_index(n, size), i), wrap=False
        )
        return trees.masked_value(reached, trees.upcast(brought, self.dtype), self.at(i))

    return Tensor(self.size, self.dtype, read)


def flatten_index(index: Sequence[Expr], size: Sequence[Expr]) -> Expr:
    """The row-major number of an index."""
    number: Expr = sympy.Integer(0)
    for i, extent in zip(index, size, strict=True):
        number = number * extent + i
    return number


def unflatten_index(number: Expr, size: tuple[Expr, ...]) -> Index:
    """The index with that row-major number."""
    index: list[Expr] = []
    for d, extent in enumerate(size):
        rest = FloorDiv(number, product(size[d + 1 :]))
        index.append(rest if d == 0 else Mod(rest, extent))
    return tuple(index)


def _numbering(count: Expr, b: Builder) -> DType:
    """The integer type that numbers so many sources."""
    return DType.I32 if bounds(count, b.sizes)[1] <= INT32_MAX else DType.I64
