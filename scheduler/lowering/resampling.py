# ruff: noqa: ARG001 - rules have the signature of their op
"""Resampling to another size: nearest, linear and cubic, with and without antialiasing, and their
gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value, call, const, index_value, upcast
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.creation import full
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.interpolation import (
    Ratio,
    Taps,
    cubic,
    cubic_far,
    cubic_near,
    explicit_scales,
    fraction,
    linear,
    make_ratio,
    nearest,
    tap_count,
)
from scheduler.lowering.pointwise import materialize
from scheduler.lowering.reductions import accumulator_dtype
from scheduler.lowering.scatter import Sources, combine
from scheduler.lowering.tensor import Index, ReadAt, Tensor

_ZERO = sympy.Integer(0)
_TapFunction = Callable[[Ratio, Expr, DType], Taps]
_SCALES = ("scales_d", "scales_h", "scales_w")


def _ratios(
    input_size: tuple[Expr, ...],
    output_size: tuple[Expr, ...],
    arguments: dict[str, Any],
    aligned: bool = False,
) -> list[Ratio]:
    """The ratio of each dimension from the third on, under any of the ops' names for scales."""
    rank = len(input_size) - 2
    scales: Any = arguments.get("scale_factors")
    if "scales" in arguments:
        scales = (arguments["scales"],)
    elif "scales_w" in arguments:
        scales = tuple(arguments[name] for name in _SCALES[-rank:])
    pairs = zip(input_size[2:], output_size[2:], explicit_scales(scales, rank), strict=True)
    return [
        make_ratio(input_extent, output_extent, scale, aligned)
        for input_extent, output_extent, scale in pairs
    ]


def upsample_nearest(exact: bool) -> Callable[..., Tensor]:
    def rule(
        b: Builder, self: Tensor | None = None, input: Tensor | None = None, **scales: Any
    ) -> Tensor:
        tensor = self or input
        assert tensor is not None
        meta = b.output_meta()
        wide = tensor.dtype is DType.F64
        pixel_maps = [nearest(r, exact, wide) for r in _ratios(tensor.size, meta.size, scales)]

        def read(index: Index) -> Value:
            pixels = [pixel_of(i) for pixel_of, i in zip(pixel_maps, index[2:], strict=True)]
            return _element_at(b, tensor, index[:2], pixels)

        return materialize(b, Tensor(meta.size, meta.dtype, read))

    return rule


def _element_at(b: Builder, tensor: Tensor, leading: Index, pixels: list[Expr | Value]) -> Value:
    """The element at positions, some of which are computed at run time."""
    if not pixels:
        return tensor.at(leading)
    pixel, *other_pixels = pixels
    if isinstance(pixel, sympy.Expr):
        return _element_at(b, tensor, (*leading, pixel), other_pixels)
    return read_at(
        b,
        pixel,
        tensor.size[len(leading)],
        lambda i: _element_at(b, tensor, (*leading, i), other_pixels),
    )


def read_at(b: Builder, position: Value, size: Expr, read: ReadAt) -> Value:
    """``read`` at the position given by a tree, clamped to a dimension of ``size``."""
    position_tensor = Tensor((), DType.I64, lambda _: position)
    return b.indirect(position_tensor, (), size, read, wrap=False)


def upsample(taps: _TapFunction) -> Callable[..., Tensor]:
    """Interpolation between a few pixels along each dimension."""

    def rule(
        b: Builder,
        align_corners: bool,
        self: Tensor | None = None,
        input: Tensor | None = None,
        **scales: Any,
    ) -> Tensor:
        tensor = self or input
        assert tensor is not None
        meta = b.output_meta()
        if not tensor.dtype.is_float:
            raise Unsupported("interpolation of integers is not supported")
        accumulate = accumulator_dtype(tensor.dtype)
        ratios = _ratios(tensor.size, meta.size, scales, bool(align_corners))

        def read(index: Index) -> Value:
            dim_taps = [taps(r, i, accumulate) for r, i in zip(ratios, index[2:], strict=True)]
            return _blend(tensor, index[:2], dim_taps, accumulate)

        return b.pointwise(meta.size, meta.dtype, read)

    return rule


def _blend(tensor: Tensor, leading: Index, taps: list[Taps], dtype: DType) -> Value:
    """The weighted sum over the taps of all dimensions."""
    if not taps:
        return upcast(tensor.at(leading), dtype)
    result: Value | None = None
    for pixel, weight in taps[0]:
        term = weight * _blend(tensor, (*leading, pixel), taps[1:], dtype)
        result = term if result is None else result + term
    assert result is not None
    return result


def upsample_antialiased(reach: int) -> Callable[..., Tensor]:
    """``reach`` 1: a triangle filter; 2: Keys' cubic filter. Both are widened for downsampling.

    Dimensions are filtered one after the other, the last first, as in torch.
    """

    def rule(
        b: Builder,
        align_corners: bool,
        self: Tensor | None = None,
        input: Tensor | None = None,
        **scales: Any,
    ) -> Tensor:
        tensor = self or input
        assert tensor is not None
        meta = b.output_meta()
        ratios = _ratios(tensor.size, meta.size, scales, bool(align_corners))
        if not tensor.dtype.is_float:
            raise Unsupported("interpolation of integers is not supported")
        if not all(r.numerator.is_Integer and r.denominator.is_Integer for r in ratios):
            raise Unsupported("antialiasing by a ratio of symbolic sizes is not supported")
        for d in reversed(range(len(ratios))):
            is_last_pass = d == 0
            dtype = meta.dtype if is_last_pass else accumulator_dtype(tensor.dtype)
            tensor = _filter_dim(b, tensor, d + 2, ratios[d], reach, dtype)
        return tensor

    return rule


def _filter_dim(
    b: Builder, tensor: Tensor, dim: int, ratio: Ratio, reach: int, dtype: DType
) -> Tensor:
    accumulate = accumulator_dtype(tensor.dtype)
    numerator, denominator = int(ratio.numerator), int(ratio.denominator)
    support = max(numerator, denominator)
    taps = sympy.Integer(tap_count(ratio, reach))

    def first(output_pixel: Expr) -> Expr:
        """floor(center - support + 1/2)."""
        start = (2 * output_pixel + 1) * numerator - 2 * reach * support + denominator
        return FloorDiv(start, sympy.Integer(2 * denominator))

    def weight(output_pixel: Expr, tap: Expr) -> tuple[Expr, Value, Value]:
        """An input pixel, its weight, and whether it is inside the input."""
        pixel = first(output_pixel) + tap
        scaled_distance = (2 * pixel + 1) * denominator - (2 * output_pixel + 1) * numerator
        distance = call("abs", fraction(scaled_distance, sympy.Integer(2 * support), accumulate))
        is_not_negative = index_value(pixel) >= index_value(0)
        factor = call("maximum", 1 - distance, 0)  # a triangle
        if reach == 2:  # Keys' cubic convolution with A = -1/2, as in torch's antialiasing and PIL
            far = call("where", distance < 2, cubic_far(distance, -0.5), 0)
            factor = call("where", distance < 1, cubic_near(distance, -0.5), far)
        return (
            pixel,
            factor,
            trees.all_of(is_not_negative, trees.less_than(pixel, ratio.input_size)),
        )

    def total(index: Index, inner: Index) -> Value:
        _, value, is_inside = weight(index[0], inner[0])
        return trees.masked_value(is_inside, value, const(0, accumulate))

    sums = b.reduction((ratio.output_size,), (taps,), ReductionKind.SUM, total, dtype=accumulate)

    def read(index: Index, inner: Index) -> Value:
        pixel, value, is_inside = weight(index[dim], inner[0])
        x = upcast(tensor.at((*index[:dim], pixel, *index[dim + 1 :])), accumulate)
        return trees.masked_value(is_inside, value * x, const(0, accumulate))

    size = (*tensor.size[:dim], ratio.output_size, *tensor.size[dim + 1 :])
    return b.reduction(
        size,
        (taps,),
        ReductionKind.SUM,
        read,
        dtype=dtype,
        accumulate=accumulate,
        after=lambda acc, i: acc / sums.at((_ZERO if ratio.output_size == 1 else i[dim],)),
    )


def upsample_nearest_backward(exact: bool) -> Callable[..., Tensor]:
    def rule(
        b: Builder, grad_output: Tensor, output_size: Any, input_size: Any, **scales: Any
    ) -> Tensor:
        meta = b.output_meta()
        wide = grad_output.dtype is DType.F64
        ratios = _ratios(meta.size, grad_output.size, scales)
        pixel_maps = [nearest(r, exact, wide) for r in ratios]

        def pixels(index: Index) -> tuple[Expr | Value, ...]:
            return (
                *index[:2],
                *(pixel_of(i) for pixel_of, i in zip(pixel_maps, index[2:], strict=True)),
            )

        sources = Sources(grad_output.size, pixels, grad_output.at)
        return _scatter_sum(b, sources)

    return rule


def upsample_backward(taps: _TapFunction, count: int) -> Callable[..., Tensor]:
    """Add the weighted gradient of every output pixel to the ``count`` pixels per dimension that it
    is computed from."""

    def rule(
        b: Builder,
        grad_output: Tensor,
        output_size: Any,
        input_size: Any,
        align_corners: bool,
        **scales: Any,
    ) -> Tensor:
        meta = b.output_meta()
        rank = grad_output.rank
        accumulate = accumulator_dtype(grad_output.dtype)
        ratios = _ratios(meta.size, grad_output.size, scales, bool(align_corners))

        def selected_taps(index: Index) -> list[tuple[Value, Value]]:
            pairs = zip(ratios, index[2:rank], index[rank:], strict=True)
            return [_select_tap(taps(r, i, accumulate), k) for r, i, k in pairs]

        def places(index: Index) -> tuple[Expr | Value, ...]:
            return (*index[:2], *(pixel for pixel, _ in selected_taps(index)))

        def value(index: Index) -> Value:
            result = upcast(grad_output.at(index[:rank]), accumulate)
            for _, weight in selected_taps(index):
                result = result * weight
            return result

        size = (*grad_output.size, *(sympy.Integer(count),) * (rank - 2))
        return _scatter_sum(b, Sources(size, places, value))

    return rule


def _select_tap(taps: Taps, number: Expr) -> tuple[Value, Value]:
    """Position and weight of the tap with this number."""
    pixel, weight = index_value(taps[-1][0]), taps[-1][1]
    for k in reversed(range(len(taps) - 1)):
        is_selected = trees.equal(number, k)
        pixel = call("where", is_selected, index_value(taps[k][0]), pixel)
        weight = call("where", is_selected, taps[k][1], weight)
    return pixel, weight


def _scatter_sum(b: Builder, sources: Sources) -> Tensor:
    meta = b.output_meta()
    base = full(meta.size, 0, meta.dtype)
    return materialize(b, combine(b, base, ReductionKind.SUM, sources))


UPSAMPLE_LINEAR, UPSAMPLE_CUBIC = upsample(linear), upsample(cubic)
LINEAR_BACKWARD, CUBIC_BACKWARD = upsample_backward(linear, 2), upsample_backward(cubic, 4)
