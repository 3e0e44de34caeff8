"""Gradients of normalisations by the statistics of their input.

All use one formula. With x̂ the normalised input and g the gradient times the weight, over the n
elements that share statistics: ``inverse deviation * (g - sum(g) / n - x̂ sum(g x̂) / n)``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import mul
from typing import Any

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv
from scheduler.ir.index.simplify import simplify
from scheduler.ir.values import Value, call, upcast
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.reductions import (
    accumulator_dtype,
    divide_by_count,
    reduced_count,
    row_index,
    sum_over,
)
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import reshape

_ZERO = sympy.Integer(0)
_IndexMap = Callable[[Index], Index]
_Read = Callable[[Index], Value]


def _lazy_product(
    size: tuple[Expr, ...], dtype: DType, *factors_with_maps: tuple[Tensor | None, _IndexMap]
) -> Tensor:
    """The product of tensors, each read at its mapped index, in the accumulator type."""
    accumulate = accumulator_dtype(dtype)

    def read(index: Index) -> Value:
        factors = [
            upcast(t.at(index_map(index)), accumulate)
            for t, index_map in factors_with_maps
            if t is not None
        ]
        return reduce(mul, factors)

    return Tensor(size, accumulate, read)


def _normalized(input: Tensor, mean: Tensor | None, inverse: Tensor, row: _IndexMap) -> Tensor:
    """x̂: the input minus its mean, times its inverse deviation."""
    accumulate = accumulator_dtype(input.dtype)

    def read(index: Index) -> Value:
        value = upcast(input.at(index), accumulate)
        if mean is not None:
            value = value - upcast(mean.at(row(index)), accumulate)
        return value * upcast(inverse.at(row(index)), accumulate)

    return Tensor(input.size, accumulate, read)


def _sum(
    b: Builder,
    x: Tensor,
    dims: tuple[int, ...],
    dtype: DType,
    factor: Tensor | None = None,
    size: Any = None,
) -> Tensor:
    """The sum over ``dims`` of ``x``, or of its products with ``factor``."""
    accumulate = accumulator_dtype(x.dtype)

    def before(value: Value, index: Index) -> Value:
        return value if factor is None else value * upcast(factor.at(index), accumulate)

    if not dims:
        result = Tensor(
            x.size, dtype, lambda i: upcast(before(upcast(x.at(i), accumulate), i), dtype)
        )
        return b.realize(result)
    return sum_over(b, x, dims, dtype=dtype, accumulate=accumulate, size=size, before=before)


def _input_gradient(
    b: Builder,
    g: Tensor,
    normalized: Tensor,
    inverse: _Read,
    dims: tuple[int, ...],
    dtype: DType,
    *,
    centred: bool = True,
) -> Tensor:
    accumulate = accumulator_dtype(dtype)
    number = reduced_count(g, dims)
    projection = _sum(b, g, dims, accumulate, normalized)
    gradient_sum = _sum(b, g, dims, accumulate) if centred else None

    def read(index: Index) -> Value:
        row = row_index(index, dims)
        value = g.at(index)
        if gradient_sum is not None:
            value = value - divide_by_count(gradient_sum.at(row), number)
        projected = normalized.at(index) * divide_by_count(projection.at(row), number)
        return (value - projected) * inverse(index)

    return b.pointwise(g.size, dtype, read)


def _identity_map(index: Index) -> Index:
    return index


def layer_norm_backward(
    b: Builder,
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: tuple[Any, ...],
    rstd: Tensor,
    output_mask: tuple[bool, ...],
    mean: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
) -> tuple[Tensor | None, ...]:
    """Gradients of layer_norm (three results), or without a mean, of rms_norm (two)."""
    leading_rank = input.rank - len(normalized_shape)
    dims, outer = tuple(range(leading_rank, input.rank)), tuple(range(leading_rank))
    accumulate = accumulator_dtype(input.dtype)

    def row(index: Index) -> Index:
        return (*index[:leading_rank], *(_ZERO,) * (rstd.rank - leading_rank))

    normalized = _normalized(input, mean, rstd, row)
    g = _lazy_product(
        input.size, input.dtype, (grad_out, _identity_map), (weight, lambda i: i[leading_rank:])
    )
    gradients: list[Tensor | None] = [None] * len(output_mask)
    if output_mask[0]:
        inverse = lambda i: upcast(rstd.at(row(i)), accumulate)  # noqa: E731
        gradients[0] = _input_gradient(
            b, g, normalized, inverse, dims, input.dtype, centred=mean is not None
        )
    shape = input.size[leading_rank:]
    if output_mask[1] and weight is not None:
        gradients[1] = _sum(b, grad_out, outer, weight.dtype, normalized, shape)
    if len(output_mask) > 2 and output_mask[2] and bias is not None:
        gradients[2] = _sum(b, grad_out, outer, bias.dtype, None, shape)
    return tuple(gradients)


def batch_norm_backward(
    b: Builder,
    input: Tensor,
    weight: Tensor | None,
    output_mask: tuple[bool, ...],
    eps: float,
    grad_out: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    save_mean: Tensor | None = None,
    save_invstd: Tensor | None = None,
    save_var: Tensor | None = None,
    train: bool = True,
    update: bool = True,
    **_: Any,
) -> tuple[Tensor | None, ...]:
    """Uses the saved statistics in training, otherwise the running ones. In
    ``batch_norm_backward``, ``save_var`` is the inverse deviation too."""
    uses_batch_statistics = bool(train) and bool(update)
    dims = (0, *range(2, input.rank))
    accumulate = accumulator_dtype(input.dtype)
    mean = save_mean if uses_batch_statistics else running_mean
    saved_inverse = save_invstd or save_var

    def inverse_at(channel: Index) -> Value:
        if uses_batch_statistics:
            assert saved_inverse is not None
            return upcast(saved_inverse.at(channel), accumulate)
        assert running_var is not None
        stable_variance = upcast(running_var.at(channel), accumulate) + eps
        return call("rsqrt", stable_variance)

    if (
        mean is None
        or (uses_batch_statistics and saved_inverse is None)
        or (not uses_batch_statistics and running_var is None)
    ):
        raise Unsupported("a gradient of batch_norm without its statistics is not supported")
    inverse = Tensor(input.size[1:2], accumulate, inverse_at)
    normalized = _normalized(input, mean, inverse, lambda i: i[1:2])
    g = _lazy_product(
        input.size, input.dtype, (grad_out, _identity_map), (weight, lambda i: i[1:2])
    )
    gradients: list[Tensor | None] = [None, None, None]
    if output_mask[0] and uses_batch_statistics:
        gradients[0] = _input_gradient(
            b, g, normalized, lambda i: inverse_at(i[1:2]), dims, input.dtype
        )
    elif output_mask[0]:
        gradients[0] = b.pointwise(input.size, input.dtype, lambda i: g.at(i) * inverse_at(i[1:2]))
    for output_number, factor in ((1, normalized), (2, None)):
        if output_mask[output_number]:
            meta = b.output_meta(output_number)
            gradients[output_number] = _sum(b, grad_out, dims, meta.dtype, factor, meta.size)
    return tuple(gradients)


def group_norm_backward(
    b: Builder,
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    group: int,
    output_mask: tuple[bool, ...],
    **_: Any,
) -> tuple[Tensor | None, ...]:
    accumulate = accumulator_dtype(input.dtype)
    groups = sympy.Integer(int(group))
    group_channels = simplify(FloorDiv(input.size[1], groups))
    size = (input.size[0], groups, group_channels, *input.size[2:])
    x, grad = reshape(b, input, size), reshape(b, grad_out, size)
    factor = None if weight is None else reshape(b, weight, (groups, group_channels))
    normalized = _normalized(x, mean, rstd, lambda i: i[:2])
    g = _lazy_product(size, input.dtype, (grad, _identity_map), (factor, lambda i: i[1:3]))
    gradients: list[Tensor | None] = [None, None, None]
    if output_mask[0]:
        inverse = lambda i: upcast(rstd.at(i[:2]), accumulate)  # noqa: E731
        dims = tuple(range(2, len(size)))
        gradients[0] = reshape(
            b, _input_gradient(b, g, normalized, inverse, dims, input.dtype), input.size
        )
    outer = (0, *range(3, len(size)))
    for output_number, multiplier in ((1, normalized), (2, None)):
        if output_mask[output_number]:
            meta = b.output_meta(output_number)
            result = _sum(b, grad, outer, meta.dtype, multiplier, (groups, group_channels))
            gradients[output_number] = reshape(b, result, meta.size)
    return tuple(gradients)
