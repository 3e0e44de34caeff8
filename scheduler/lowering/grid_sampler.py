"""Sampling at positions given by a grid, with torch's modes and paddings; affine grids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import as_expr
from scheduler.ir.values import Cast, Value, call, const, index_value, upcast
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.interpolation import cubic_weights, fraction
from scheduler.lowering.reductions import accumulator_type
from scheduler.lowering.resampling import read_at
from scheduler.lowering.tensor import Index, Tensor

_BILINEAR, _NEAREST, _CUBIC = 0, 1, 2
_ZEROS, _BORDER, _REFLECTION = 0, 1, 2


def _size_value(size: Expr, dtype: DType) -> Value:
    return const(int(size), dtype) if size.is_Integer else Cast(index_value(size), dtype)


def _source(x: Value, size: Expr, aligned: bool) -> Value:
    """Convert -1 … 1 to pixels."""
    count = _size_value(size, x.dtype)
    if aligned:
        return (x + 1) * ((count - 1) / 2)
    return ((x + 1) * count - 1) / 2


def _clipped(x: Value, size: Expr) -> Value:
    """Clip to the first and last pixel; NaN becomes the first."""
    last = _size_value(size, x.dtype) - 1
    return call("where", x > 0, call("minimum", x, last), 0)  # x > 0 is false for NaN


def _reflected(x: Value, size: Expr, aligned: bool) -> Value:
    """Reflect at the first and last pixel, at their centres or outer edges."""
    if aligned and size == 1:
        return const(0, x.dtype)
    count = _size_value(size, x.dtype)
    low = const(0.0 if aligned else -0.5, x.dtype)
    span = count - 1 if aligned else count
    away = call("abs", x - low)
    over = call("fmod", away, span)
    turns = call("floor", away / span)
    half = turns * 0.5
    even = call("eq", call("floor", half), half)
    there, back = over + low, span - over + low
    return call("where", even, there, back)


def _padded(x: Value, size: Expr, padding: int, aligned: bool) -> Value:
    if padding == _REFLECTION:
        x = _reflected(x, size, aligned)
    return x if padding == _ZEROS else _clipped(x, size)


class _Sampler:
    """Reads for one output position; ``places`` are integers held as floats."""

    def __init__(self, b: Builder, input: Tensor, held: DType) -> None:
        self.b, self.input, self.held = b, input, held

    def read(self, known: Index, places: list[Value]) -> Value:
        """The element at the position; 0 outside the input."""
        conditions: list[Value] = []
        clamped = []  # to a range that an integer can hold
        for place, size in zip(places, self.input.size[2:], strict=True):
            conditions += [place >= 0, place < _size_value(size, place.dtype)]
            clamped.append(trees.cast(_clipped(place, size), DType.I64))
        value = self._at(known, clamped)
        return trees.masked_value(trees.all_of(*conditions), value, const(0, self.held))

    def _at(self, known: Index, places: list[Value]) -> Value:
        if not places:
            return upcast(self.input.at(known), self.held)
        first, *rest = places
        size = self.input.size[len(known)]
        return read_at(self.b, first, size, lambda i: self._at((*known, i), rest))


def grid_sampler(
    b: Builder,
    input: Tensor,
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Tensor:
    """``grid`` [N, ..., 2 or 3] gives the positions; its last coordinate is along the input's first
    spatial dimension."""
    meta = b.meta()
    rank = input.rank - 2
    accumulate = accumulator_type(input.dtype)
    aligned = bool(align_corners)
    if interpolation_mode not in (_BILINEAR, _NEAREST, _CUBIC) or padding_mode not in range(3):
        raise Unsupported(
            f"grid_sampler with mode {interpolation_mode} and padding {padding_mode} is not "
            "supported"
        )
    if interpolation_mode == _CUBIC and rank != 2:
        raise Unsupported("bicubic grid_sampler of volumes is not supported")
    sampler = _Sampler(b, input, accumulate)

    def read(index: Index) -> Value:
        known, spatial = index[:2], index[2:]
        at = [
            upcast(grid.at((index[0], *spatial, sympy.Integer(rank - 1 - d))), accumulate)
            for d in range(rank)
        ]
        sources = [_source(x, n, aligned) for x, n in zip(at, input.size[2:], strict=True)]
        if interpolation_mode == _CUBIC:
            return _cubic(sampler, known, sources, padding_mode, aligned)
        pairs = zip(sources, input.size[2:], strict=True)
        placed = [_padded(x, n, padding_mode, aligned) for x, n in pairs]
        if interpolation_mode == _NEAREST:
            return sampler.read(known, [call("round", x) for x in placed])
        return _linear(sampler, known, placed)

    return b.pointwise(meta.size, meta.dtype, read)


def _linear(sampler: _Sampler, known: Index, placed: list[Value]) -> Value:
    taps = []
    for x in placed:
        low = call("floor", x)
        share = x - low
        taps.append([(low, 1 - share), (low + 1, share)])
    return _weighted_sum(taps, lambda places: sampler.read(known, places))


def _cubic(
    sampler: _Sampler, known: Index, sources: list[Value], padding: int, aligned: bool
) -> Value:
    """Bicubic sampling; each of the 4 by 4 pixels is padded separately."""
    taps = []
    for d, x in enumerate(sources):
        low = call("floor", x)
        size = sampler.input.size[2 + d]
        places = [low + k for k in (-1, 0, 1, 2)]
        padded = [_padded(place, size, padding, aligned) for place in places]
        weights = cubic_weights(x - low)
        taps.append(list(zip(padded, weights, strict=True)))
    return _weighted_sum(taps, lambda places: sampler.read(known, places))


def _weighted_sum(
    taps: list[list[tuple[Value, Value]]], read: Callable[[list[Value]], Value]
) -> Value:
    """The weighted sum over the taps of all dimensions."""

    def over(rest: list[list[tuple[Value, Value]]], places: list[Value]) -> Value:
        if not rest:
            return read(places)
        total: Value | None = None
        for place, weight in rest[0]:
            part = weight * over(rest[1:], [*places, place])
            total = part if total is None else total + part
        assert total is not None
        return total

    return over(taps, [])


def affine_grid(b: Builder, theta: Tensor, size: tuple[Any, ...], align_corners: bool) -> Tensor:
    """theta [N, d, d + 1] times (x, y, (z,) 1), with x along the last dimension of ``size``."""
    meta = b.meta()
    accumulate = accumulator_type(meta.dtype)
    spatial = tuple(as_expr(n) for n in size[2:])
    rank = len(spatial)

    def coordinate(i: Expr, n: Expr) -> Value:
        if align_corners:
            if n == 1:
                return const(0, accumulate)
            return fraction(2 * i - n + 1, n - 1, accumulate)
        return fraction(2 * i - n + 1, n, accumulate)

    def read(index: Index) -> Value:
        batch, *places, row = index
        total = upcast(theta.at((batch, row, sympy.Integer(rank))), accumulate)
        for k in range(rank):
            d = rank - 1 - k  # x comes first
            factor = upcast(theta.at((batch, row, sympy.Integer(k))), accumulate)
            part = factor * coordinate(places[d], spatial[d])
            total = total + part
        return total

    return b.pointwise(meta.size, meta.dtype, read)
