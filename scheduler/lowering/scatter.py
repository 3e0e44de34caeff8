"""Writes to data-dependent positions, using one operation: ``Scatter``.

Values that are combined (sum, product, maximum, minimum) are combined in a type with atomic memory
operations. Of values that overwrite each other the last one wins, as in torch on a CPU: a scatter
finds the greatest source number that reaches each position, and its value is read from there, so
that the result is the same in every run.
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
from scheduler.ir.values import Value, call, const, index_value, upcast
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.tensor import Index, Places, Reader, Tensor

_BOOL_KINDS = {ReductionKind.SUM: ReductionKind.MAX, ReductionKind.PROD: ReductionKind.MIN}


@dataclass(frozen=True)
class Sources:
    """The sources of a write: a value at each point of ``size``, written to ``places`` of the
    result where ``condition`` holds (None: everywhere)."""

    size: tuple[Expr, ...]
    places: Places
    value: Reader
    condition: Reader | None = None


def combine_dtype(dtype: DType) -> DType:
    """The type in which values are combined: f32 for narrower floats (rounded once, at the end),
    i32 for small integers and booleans, i64 for unsigned integers of at least 4 bytes."""
    compute_dtype = dtype.compute_dtype
    return (
        compute_dtype
        if compute_dtype in ATOMIC
        else DType.I64
        if compute_dtype.itemsize >= 4
        else DType.I32
    )


def combine(
    b: Builder, self: Tensor, kind: ReductionKind, sources: Sources, initial: Reader | None = None
) -> Tensor:
    """``self`` with every source combined into its position; ``initial`` replaces ``self``'s own
    elements. Elements are rounded to 16-bit floats only when stored."""
    if self.dtype.is_complex:
        return _combine_complex(b, self, kind, sources, initial or self.at)
    accumulate_dtype = combine_dtype(self.dtype)
    if self.dtype is DType.U64 and kind in (ReductionKind.MAX, ReductionKind.MIN):
        raise Unsupported(
            "scatter by the maximum or minimum of 64-bit unsigned integers is not supported"
        )
    if self.dtype is DType.BOOL:
        kind = _BOOL_KINDS.get(kind, kind)

    def in_accumulate_dtype(read: Reader) -> Reader:
        return lambda i: upcast(read(i), accumulate_dtype)

    result = b.scatter(
        self.size,
        accumulate_dtype,
        kind,
        in_accumulate_dtype(initial or self.at),
        sources.size,
        sources.places,
        in_accumulate_dtype(sources.value),
        sources.condition,
    )
    if accumulate_dtype is self.dtype:
        return result
    return Tensor(self.size, self.dtype, lambda i: from_combine_dtype(result.at(i), self.dtype))


def _combine_complex(
    b: Builder, self: Tensor, kind: ReductionKind, sources: Sources, initial: Reader
) -> Tensor:
    """Sums of complex numbers, computed separately for the real and imaginary parts."""
    if kind is not ReductionKind.SUM:
        raise Unsupported("scatter of complex numbers other than by a sum is not supported")
    dtype = self.dtype

    def component(name: str, read: Reader) -> Reader:
        return lambda i: call(name, upcast(read(i), dtype))

    real, imaginary = (
        combine(
            b,
            Tensor(self.size, dtype.real, component(name, self.at)),
            kind,
            replace(sources, value=component(name, sources.value)),
            component(name, initial),
        )
        for name in ("real", "imag")
    )
    return Tensor(self.size, dtype, lambda i: call("complex", real.at(i), imaginary.at(i)))


def from_combine_dtype(value: Value, dtype: DType) -> Value:
    """Convert a combined value to the compute type of ``dtype``."""
    if dtype is DType.BOOL:
        return call("ne", value, 0)
    return upcast(value, dtype)


def neutral_element(kind: ReductionKind, dtype: DType) -> Value:
    """The identity element of the reduction for a type."""
    if kind in (ReductionKind.SUM, ReductionKind.PROD):
        return const(int(kind is ReductionKind.PROD), dtype)
    greatest = kind is ReductionKind.MIN
    if dtype is DType.BOOL:
        return const(greatest, dtype)
    if dtype.is_float:
        return const(float("inf" if greatest else "-inf"), dtype)
    bits = 8 * dtype.itemsize
    low = 0 if dtype.is_unsigned else -(2 ** (bits - 1))
    return const(low + 2**bits - 1 if greatest else low, dtype)


def count_sources(b: Builder, size: tuple[Expr, ...], sources: Sources) -> Tensor:
    """The number of sources that reach each position."""
    dtype = _number_dtype(product(sources.size), b)
    return b.scatter(
        size,
        dtype,
        ReductionKind.SUM,
        lambda _: const(0, dtype),
        sources.size,
        sources.places,
        lambda _: const(1, dtype),
        sources.condition,
    )


def last_source(
    b: Builder,
    size: tuple[Expr, ...],
    sources: Sources,
    number: Callable[[Index], Expr] | None = None,
    count: Expr | None = None,
) -> Tensor:
    """The number of the last source that reaches each position, -1 if there is none. Sources are
    numbered in row-major order, or by ``number`` of their index, which is below ``count``."""
    numbered = number or (lambda i: flatten_index(i, sources.size))
    dtype = _number_dtype(product(sources.size) if count is None else count, b)
    return b.scatter(
        size,
        dtype,
        ReductionKind.MAX,
        lambda _: const(-1, dtype),
        sources.size,
        sources.places,
        lambda i: upcast(index_value(numbered(i)), dtype),
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
    """``self`` with each element replaced by the value of the last source that reaches it.

    Sources are indexed by ``size``. ``places`` are their positions in the dimensions ``keys`` of
    ``self``; whole slices of the other dimensions are written. ``value`` is the value that a source
    writes to an index of ``self``.
    """
    extents = tuple(self.size[d] for d in keys)
    winner = last_source(b, extents, Sources(size, places, value=lambda _: const(0, DType.I64)))

    def read(i: Index) -> Value:
        key = tuple(i[d] for d in keys)
        source_number = winner.at(key)
        is_written = source_number >= 0
        source_value = b.indirect(
            winner, key, product(size), lambda n: value(unflatten_index(n, size), i), wrap=False
        )
        return trees.masked_value(is_written, upcast(source_value, self.dtype), self.at(i))

    return Tensor(self.size, self.dtype, read)


def flatten_index(index: Sequence[Expr], size: Sequence[Expr]) -> Expr:
    """The row-major position of an index."""
    position: Expr = sympy.Integer(0)
    for i, extent in zip(index, size, strict=True):
        position = position * extent + i
    return position


def unflatten_index(position: Expr, size: tuple[Expr, ...]) -> Index:
    """The index at a row-major position."""
    index: list[Expr] = []
    for d, extent in enumerate(size):
        quotient = FloorDiv(position, product(size[d + 1 :]))
        index.append(quotient if d == 0 else Mod(quotient, extent))
    return tuple(index)


def _number_dtype(count: Expr, b: Builder) -> DType:
    """The integer type that can number this many sources."""
    return DType.I32 if bounds(count, b.sizes)[1] <= INT32_MAX else DType.I64
