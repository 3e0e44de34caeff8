"""Derivatives along dimensions by finite differences (``torch.gradient``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy

from scheduler.ir.values import Value
from scheduler.lowering.builder import Builder
from scheduler.lowering.compose import lazy_elementwise
from scheduler.lowering.concat import concatenate
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.pointwise import Argument, materialize
from scheduler.lowering.tensor import Tensor
from scheduler.lowering.views import normalize_dim, reshape, slice_dim

_ONE = sympy.Integer(1)
#: Coefficients of three neighbours, from the step widths to the left and right.
_FactorsFunction = Callable[[Value, Value], tuple[Value, Value, Value]]


def gradient(
    b: Builder, self: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """One result per dimension. ``spacing`` is one step for all, one per dimension, or coordinates
    per dimension."""
    dims = range(self.rank) if dim is None else (dim,) if isinstance(dim, int) else dim
    steps = spacing if isinstance(spacing, tuple | list) else [spacing] * len(dims)
    if edge_order not in (1, 2) or len(steps) != len(dims):
        raise Unsupported(
            f"a gradient with edge_order={edge_order} and {len(steps)} spacings is not supported"
        )
    differentiate: Any = (
        _nonuniform_gradient
        if any(isinstance(step, Tensor) for step in steps)
        else _uniform_gradient
    )
    results = []
    for output_number, (axis, step) in enumerate(zip(dims, steps, strict=True)):
        dtype = b.output_meta(output_number).dtype
        parts = differentiate(
            b, self, normalize_dim(axis, self.rank), 1 if step is None else step, edge_order
        )
        result = concatenate(parts, normalize_dim(axis, self.rank), dtype)
        b.check_output_shape(result.size, output_number)
        results.append(materialize(b, Tensor(result.size, dtype, result.at)))
    return tuple(results)


def _uniform_gradient(
    b: Builder, x: Tensor, axis: int, step: Argument, edge_order: int
) -> Sequence[Tensor]:
    """Steps of one width. Differences are computed in the tensor's own type."""
    dtype = b.output_meta().dtype
    length = x.size[axis]

    def scaled_difference(high: Tensor, low: Tensor, steps: int) -> Tensor:
        difference = lazy_elementwise((high, low), lambda p, q: p - q, x.dtype)
        return lazy_elementwise((difference, step), lambda d, h: d / (h * steps), dtype)

    def weighted_edge(start: Any, *factors: float) -> Tensor:
        neighbours = [slice_dim(x, axis, start + k, _ONE) for k in range(3)]
        neighbours[1] = lazy_elementwise(
            (neighbours[1],), lambda v: v * 2, x.dtype
        )  # wraps in this type, as in torch

        def function(p: Value, q: Value, r: Value, h: Value) -> Value:
            return (p * factors[0] + q * factors[1] + r * factors[2]) / h

        return lazy_elementwise((*neighbours, step), function, dtype)

    center = scaled_difference(
        slice_dim(x, axis, sympy.Integer(2), length - 2),
        slice_dim(x, axis, sympy.Integer(0), length - 2),
        2,
    )
    if edge_order == 1:
        edges = [
            slice_dim(x, axis, start, _ONE)
            for start in (sympy.Integer(0), _ONE, length - 2, length - 1)
        ]
        first_edge = scaled_difference(edges[1], edges[0], 1)
        last_edge = scaled_difference(edges[3], edges[2], 1)
    else:
        first_edge = weighted_edge(sympy.Integer(0), -1.5, 1.0, -0.5)
        last_edge = weighted_edge(length - 3, 0.5, -1.0, 1.5)
    return (first_edge, last_edge) if center.size[axis] == 0 else (first_edge, center, last_edge)


def _nonuniform_gradient(
    b: Builder, x: Tensor, axis: int, coordinates: Tensor, edge_order: int
) -> Sequence[Tensor]:
    """Coordinates with any spacing: coefficients of three neighbours that are exact for
    parabolas."""
    dtype = b.output_meta().dtype
    length = x.size[axis]
    count = coordinates.size[0] - 1
    widths = lazy_elementwise(
        (
            slice_dim(coordinates, 0, _ONE, count),
            slice_dim(coordinates, 0, sympy.Integer(0), count),
        ),
        lambda p, q: p - q,
        coordinates.dtype,
    )

    def width(start: Any, length: Any) -> Tensor:
        widths_part = slice_dim(widths, 0, start, length)
        return reshape(b, widths_part, tuple(length if d == axis else _ONE for d in range(x.rank)))

    def three_point(start: Any, left: Any, length: Any, factors: _FactorsFunction) -> Tensor:
        parts = [slice_dim(x, axis, start + k, length) for k in range(3)]

        def function(p: Value, q: Value, r: Value, h: Value, k: Value) -> Value:
            left, middle, right = factors(h, k)
            return p * left + q * middle + r * right

        return lazy_elementwise(
            (*parts, width(left, length), width(left + 1, length)), function, dtype
        )

    def two_point(start: Any, left: Any) -> Tensor:
        return lazy_elementwise(
            (
                slice_dim(x, axis, start + 1, _ONE),
                slice_dim(x, axis, start, _ONE),
                width(left, _ONE),
            ),
            lambda p, q, h: (p - q) / h,
            dtype,
        )

    zero = sympy.Integer(0)
    parts = [] if length == 2 else [three_point(zero, zero, length - 2, _inner_factors)]
    if edge_order == 1:
        return (two_point(zero, zero), *parts, two_point(length - 2, length - 2))
    return (
        three_point(zero, zero, _ONE, _first_factors),
        *parts,
        three_point(length - 3, length - 3, _ONE, _last_factors),
    )


def _inner_factors(h: Value, k: Value) -> tuple[Value, Value, Value]:
    return -(k / (h * (h + k))), (k - h) / (h * k), h / (k * (h + k))


def _first_factors(h: Value, k: Value) -> tuple[Value, Value, Value]:
    return -((h * 2 + k) / (h * (h + k))), (h + k) / (h * k), -(h / (k * (h + k)))


def _last_factors(h: Value, k: Value) -> tuple[Value, Value, Value]:
    return k / (h * (h + k)), -((h + k) / (h * k)), (k * 2 + h) / (k * (h + k))
