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
from scheduler.lowering.reductions import accumulator_dtype
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
    distance = call("abs", x - low)
    remainder = call("fmod", distance, span)
    reflections = call("floor", distance / span)
    half_reflections = reflections * 0.5
    is_even = call("eq", call("floor", half_reflections), half_reflections)
    forward, backward = remainder + low, span - remainder + low
    return call("where", is_even, forward, backward)


def _padded(x: Value, size: Expr, padding: int, aligned: bool) -> Value:
    if padding == _REFLECTION:
        x = _reflected(x, size, aligned)
    return x if padding == _ZEROS else _clipped(x, size)


class _Sampler:
    """Reads for one output position; ``places`` are integers held as floats."""

    def __init__(self, b: Builder, input: Tensor, dtype: DType) -> None:
        self.b, self.input, self.held = b, input, dtype

    def read(self, leading: Index, positions: list[Value]) -> Value:
        """The element at the position; 0 outside the input."""
        conditions: list[Value] = []
        clamped = []  # to a range that an integer can hold
        for position, size in zip(positions, self.input.size[2:], strict=True):
            conditions += [position >= 0, position < _size_value(size, position.dtype)]
            clamped.append(trees.cast(_clipped(position, size), DType.I64))
        value = self._at(leading, clamped)
        return trees.masked_value(trees.all_of(*conditions), value, const(0, self.held))

    def _at(self, leading: Index, positions: list[Value]) -> Value:
        if not positions:
            return upcast(self.input.at(leading), self.held)
        position, *other_positions = positions
        size = self.input.size[len(leading)]
        return read_at(self.b, position, size, lambda i: self._at((*leading, i), other_positions))


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
    meta = b.output_meta()
    rank = input.rank - 2
    accumulate = accumulator_dtype(input.dtype)
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
        leading, spatial = index[:2], index[2:]
        coordinates = [
            upcast(grid.at((index[0], *spatial, sympy.Integer(rank - 1 - d))), accumulate)
            for d in range(rank)
        ]
        sources = [_source(x, n, aligned) for x, n in zip(coordinates, input.size[2:], strict=True)]
        if interpolation_mode == _CUBIC:
            return _cubic(sampler, leading, sources, padding_mode, aligned)
        pairs = zip(sources, input.size[2:], strict=True)
        positions = [_padded(x, n, padding_mode, aligned) for x, n in pairs]
        if interpolation_mode == _NEAREST:
            return sampler.read(leading, [call("round", x) for x in positions])
        return _linear(sampler, leading, positions)

    return b.pointwise(meta.size, meta.dtype, read)


def _linear(sampler: _Sampler, leading: Index, positions: list[Value]) -> Value:
    taps = []
    for x in positions:
        low = call("floor", x)
        fraction_above = x - low
        taps.append([(low, 1 - fraction_above), (low + 1, fraction_above)])
    return _weighted_sum(taps, lambda pixels: sampler.read(leading, pixels))


def _cubic(
    sampler: _Sampler, leading: Index, sources: list[Value], padding: int, aligned: bool
) -> Value:
    """Bicubic sampling; each of the 4 by 4 pixels is padded separately."""
    taps = []
    for d, x in enumerate(sources):
        low = call("floor", x)
        size = sampler.input.size[2 + d]
        pixels = [low + k for k in (-1, 0, 1, 2)]
        padded_pixels = [_padded(pixel, size, padding, aligned) for pixel in pixels]
        weights = cubic_weights(x - low)
        taps.append(list(zip(padded_pixels, weights, strict=True)))
    return _weighted_sum(taps, lambda pixels: sampler.read(leading, pixels))


def _weighted_sum(
    taps: list[list[tuple[Value, Value]]], read: Callable[[list[Value]], Value]
) -> Value:
    """The weighted sum over the taps of all dimensions."""

    def sum_over_dims(
        remaining_taps: list[list[tuple[Value, Value]]], pixels: list[Value]
    ) -> Value:
        if not remaining_taps:
            return read(pixels)
        total: Value | None = None
        for pixel, weight in remaining_taps[0]:
            term = weight * sum_over_dims(remaining_taps[1:], [*pixels, pixel])
            total = term if total is None else total + term
        assert total is not None
        return total

    return sum_over_dims(taps, [])


def affine_grid(b: Builder, theta: Tensor, size: tuple[Any, ...], align_corners: bool) -> Tensor:
    """theta [N, d, d + 1] times (x, y, (z,) 1), with x along the last dimension of ``size``."""
    meta = b.output_meta()
    accumulate = accumulator_dtype(meta.dtype)
    spatial = tuple(as_expr(n) for n in size[2:])
    rank = len(spatial)

    def coordinate(i: Expr, n: Expr) -> Value:
        if align_corners:
            if n == 1:
                return const(0, accumulate)
            return fraction(2 * i - n + 1, n - 1, accumulate)
        return fraction(2 * i - n + 1, n, accumulate)

    def read(index: Index) -> Value:
        batch, *positions, row = index
        total = upcast(theta.at((batch, row, sympy.Integer(rank))), accumulate)
        for k in range(rank):
            d = rank - 1 - k  # x comes first
            factor = upcast(theta.at((batch, row, sympy.Integer(k))), accumulate)
            term = factor * coordinate(positions[d], spatial[d])
            total = total + term
        return total

    return b.pointwise(meta.size, meta.dtype, read)
