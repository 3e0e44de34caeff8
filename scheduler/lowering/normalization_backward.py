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
    accumulator_type,
    divide_by_count,
    reduced_count,
    row_index,
    sum_over,
)
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import reshape

_ZERO = sympy.Integer(0)
_Place = Callable[[Index], Index]
_Read = Callable[[Index], Value]


def _lazy_product(
    size: tuple[Expr, ...], dtype: DType, *parts: tuple[Tensor | None, _Place]
) -> Tensor:
    """The product of tensors, each read at its mapped index, in the accumulator type."""
    accumulate = accumulator_type(dtype)

    def read(index: Index) -> Value:
        factors = [upcast(t.at(place(index)), accumulate) for t, place in parts if t is not None]
        return reduce(mul, factors)

    return Tensor(size, accumulate, read)


def _normal(input: Tensor, mean: Tensor | None, inverse: Tensor, row: _Place) -> Tensor:
    """x̂: the input minus its mean, times its inverse deviation."""
    accumulate = accumulator_type(input.dtype)

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
    by: Tensor | None = None,
    size: Any = None,
) -> Tensor:
    """The sum over ``dims`` of ``x``, or of its products with ``by``."""
    accumulate = accumulator_type(x.dtype)

    def before(value: Value, place: Index) -> Value:
        return value if by is None else value * upcast(by.at(place), accumulate)

    if not dims:
        result = Tensor(
            x.size, dtype, lambda i: upcast(before(upcast(x.at(i), accumulate), i), dtype)
        )
        return b.realize(result)
    return sum_over(b, x, dims, dtype=dtype, accumulate=accumulate, size=size, before=before)


def _by_input(
    b: Builder,
    g: Tensor,
    normal: Tensor,
    inverse: _Read,
    dims: tuple[int, ...],
    dtype: DType,
    *,
    centred: bool = True,
) -> Tensor:
    accumulate = accumulator_type(dtype)
    number = reduced_count(g, dims)
    along = _sum(b, g, dims, accumulate, normal)
    total = _sum(b, g, dims, accumulate) if centred else None

    def read(index: Index) -> Value:
        row = row_index(index, dims)
        value = g.at(index)
        if total is not None:
            value = value - divide_by_count(total.at(row), number)
        turned = normal.at(index) * divide_by_count(along.at(row), number)
        return (value - turned) * inverse(index)

    return b.pointwise(g.size, dtype, read)


def _same(index: Index) -> Index:
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
    lead = input.rank - len(normalized_shape)
    dims, outer = tuple(range(lead, input.rank)), tuple(range(lead))
    accumulate = accumulator_type(input.dtype)

    def row(index: Index) -> Index:
        return (*index[:lead], *(_ZERO,) * (rstd.rank - lead))

    normal = _normal(input, mean, rstd, row)
    g = _lazy_product(input.size, input.dtype, (grad_out, _same), (weight, lambda i: i[lead:]))
    gradients: list[Tensor | None] = [None] * len(output_mask)
    if output_mask[0]:
        inverse = lambda i: upcast(rstd.at(row(i)), accumulate)  # noqa: E731
        gradients[0] = _by_input(b, g, normal, inverse, dims, input.dtype, centred=mean is not None)
    shape = input.size[lead:]
    if output_mask[1] and weight is not None:
        gradients[1] = _sum(b, grad_out, outer, weight.dtype, normal, shape)
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
    learns = bool(train) and bool(update)
    dims = (0, *range(2, input.rank))
    accumulate = accumulator_type(input.dtype)
    mean = save_mean if learns else running_mean
    saved = save_invstd or save_var

    def inverse_at(channel: Index) -> Value:
        if learns:
            assert saved is not None
            return upcast(saved.at(channel), accumulate)
        assert running_var is not None
        spread = upcast(running_var.at(channel), accumulate) + eps
        return call("rsqrt", spread)

    if mean is None or (learns and saved is None) or (not learns and running_var is None):
        raise Unsupported("a gradient of batch_norm without its statistics is not supported")
    inverse = Tensor(input.size[1:2], accumulate, inverse_at)
    normal = _normal(input, mean, inverse, lambda i: i[1:2])
    g = _lazy_product(input.size, input.dtype, (grad_out, _same), (weight, lambda i: i[1:2]))
    gradients: list[Tensor | None] = [None, None, None]
    if output_mask[0] and learns:
        gradients[0] = _by_input(b, g, normal, lambda i: inverse_at(i[1:2]), dims, input.dtype)
    elif output_mask[0]:
        gradients[0] = b.pointwise(input.size, input.dtype, lambda i: g.at(i) * inverse_at(i[1:2]))
    for place, by in ((1, normal), (2, None)):
        if output_mask[place]:
            meta = b.meta(place)
            gradients[place] = _sum(b, grad_out, dims, meta.dtype, by, meta.size)
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
    accumulate = accumulator_type(input.dtype)
    groups = sympy.Integer(int(group))
    each = simplify(FloorDiv(input.size[1], groups))
    size = (input.size[0], groups, each, *input.size[2:])
    x, grad = reshape(b, input, size), reshape(b, grad_out, size)
    factor = None if weight is None else reshape(b, weight, (groups, each))
    normal = _normal(x, mean, rstd, lambda i: i[:2])
    g = _lazy_product(size, input.dtype, (grad, _same), (factor, lambda i: i[1:3]))
    gradients: list[Tensor | None] = [None, None, None]
    if output_mask[0]:
        inverse = lambda i: upcast(rstd.at(i[:2]), accumulate)  # noqa: E731
        dims = tuple(range(2, len(size)))
        gradients[0] = reshape(b, _by_input(b, g, normal, inverse, dims, input.dtype), input.size)
    outer = (0, *range(3, len(size)))
    for place, by in ((1, normal), (2, None)):
        if output_mask[place]:
            meta = b.meta(place)
            result = _sum(b, grad, outer, meta.dtype, by, (groups, each))
            gradients[place] = reshape(b, result, meta.size)
    return tuple(gradients)
