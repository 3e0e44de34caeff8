# ruff: noqa: ARG001 - rules have the signature of their op
"""Normalizations: moments by reductions, applied by one pointwise operation."""

from __future__ import annotations

from typing import Any

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv
from scheduler.ir.index.simplify import simplify
from scheduler.ir.values import Value, call, upcast
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.reductions import (
    accumulator_type,
    divide_by_count,
    moments,
    reduced_count,
    sum_over,
)
from scheduler.lowering.tensor import Epilogue, Index, Tensor
from scheduler.lowering.views import reshape

_ZERO = sympy.Integer(0)


def _inverse_deviation(number: Expr, eps: float) -> Epilogue:
    """1 / sqrt(sum of squares / number + eps)."""

    def finish(acc: Value, _: Index) -> Value:
        return call("rsqrt", divide_by_count(acc, number) + eps)

    return finish


def scale_and_shift(
    value: Value, weight: Tensor | None, bias: Tensor | None, index: Index
) -> Value:
    """``value`` times the weight's element, plus the bias's."""
    if weight is not None:
        value = value * upcast(weight.at(index), value.dtype)
    return value if bias is None else value + upcast(bias.at(index), value.dtype)


def layer_norm(
    b: Builder,
    input: Tensor,
    normalized_shape: tuple[Any, ...],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Any:
    """(x - mean) / sqrt(variance + eps) over the last dimensions, times weight, plus bias."""
    lead = input.rank - len(normalized_shape)
    dims = tuple(range(lead, input.rank))
    average, inverse = moments(b, input, dims, _inverse_deviation(reduced_count(input, dims), eps))

    def read(index: Index) -> Value:
        normal = _normal(input, average, inverse, index, (*index[:lead], *(_ZERO for _ in dims)))
        return scale_and_shift(normal, weight, bias, index[lead:])

    return _with_statistics(b, b.pointwise(input.size, input.dtype, read), average, inverse)


def _normal(
    input: Tensor, average: Tensor | None, inverse: Tensor, index: Index, row: Index
) -> Value:
    """An element minus its row's mean, times the row's inverse deviation."""
    value = upcast(input.at(index), accumulator_type(input.dtype))
    if average is not None:
        value = value - average.at(row)
    return value * inverse.at(row)


def _with_statistics(b: Builder, normalized: Tensor, *statistics: Tensor) -> Any:
    """The node's outputs: the normalized tensor, and the statistics if the op returns them."""
    assert b.node is not None
    if len(b.node.outputs) == 1:
        return normalized
    results = [normalized]
    for output, tensor in enumerate(statistics, start=1):
        meta = b.meta(output)
        if tensor.dtype is not meta.dtype:
            read, dtype = tensor.at, meta.dtype
            tensor = b.realize(Tensor(tensor.size, dtype, lambda i: trees.cast(read(i), dtype)))  # noqa: B023, PLW2901
        results.append(reshape(b, tensor, meta.size))
    return tuple(results)


def rms_norm(
    b: Builder,
    input: Tensor,
    normalized_shape: tuple[Any, ...],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Any:
    """x / sqrt(mean of squares + eps) over the last dimensions, times weight. Also returns the
    factor if the op has a second result.

    ``eps`` defaults to the distance from 1 to the next value of the type in which torch computes:
    float32 for narrower types (torch/_decomp/decompositions.py, ``_fused_rms_norm``; the
    documentation of torch.nn.RMSNorm states the input's own type).
    """
    lead = input.rank - len(normalized_shape)
    dims = tuple(range(lead, input.rank))
    accumulate = accumulator_type(input.dtype)
    small = 2 * accumulate.eps if eps is None else eps
    inverse = sum_over(
        b,
        input,
        dims,
        dtype=accumulate,
        before=lambda x, _: x * x,
        after=_inverse_deviation(reduced_count(input, dims), small),
    )

    def read(index: Index) -> Value:
        normal = _normal(input, None, inverse, index, (*index[:lead], *(_ZERO for _ in dims)))
        return scale_and_shift(normal, weight, None, index[lead:])

    return _with_statistics(b, b.pointwise(input.size, b.meta().dtype, read), inverse)


def group_norm(
    b: Builder,
    input: Tensor,
    num_groups: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Any:
    """layer_norm over the channels of a group and all positions, with weight and bias per
    channel."""
    channels = input.size[1]
    groups = sympy.Integer(int(num_groups))
    each = simplify(FloorDiv(channels, groups))
    split = reshape(b, input, (input.size[0], groups, each, *input.size[2:]))
    dims = tuple(range(2, split.rank))
    average, inverse = moments(b, split, dims, _inverse_deviation(reduced_count(split, dims), eps))

    def read(index: Index) -> Value:
        row = (index[0], FloorDiv(index[1], each), *(_ZERO for _ in dims))
        normal = _normal(input, average, inverse, index, row)
        return scale_and_shift(normal, weight, bias, index[1:2])

    return _with_statistics(b, b.pointwise(input.size, input.dtype, read), average, inverse)


def native_group_norm(
    b: Builder,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: Any,  # noqa: N803 - torch's names
    C: Any,  # noqa: N803
    HxW: Any,  # noqa: N803
    group: int,
    eps: float,
) -> Any:
    return group_norm(b, input, group, weight, bias, eps)
