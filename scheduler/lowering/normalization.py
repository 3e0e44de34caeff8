# ruff: noqa: ARG001 - rules have the signature of their op
"""Normalizations: moments by reductions, applied by one pointwise operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv
from scheduler.ir.index.simplify import simplify
from scheduler.ir.values import Cast, Value, call, index_value, upcast
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.creation import full
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.pointwise import materialize
from scheduler.lowering.reductions import (
    accumulator_dtype,
    divide_by_count,
    moments,
    reduced_count,
    statistics_type,
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
    leading_rank = input.rank - len(normalized_shape)
    dims = tuple(range(leading_rank, input.rank))
    average, inverse = moments(b, input, dims, _inverse_deviation(reduced_count(input, dims), eps))

    def read(index: Index) -> Value:
        normalized = _normalize_element(
            input, average, inverse, index, (*index[:leading_rank], *(_ZERO for _ in dims))
        )
        return scale_and_shift(normalized, weight, bias, index[leading_rank:])

    return _with_statistics(b, b.pointwise(input.size, input.dtype, read), average, inverse)


def _normalize_element(
    input: Tensor, average: Tensor | None, inverse: Tensor, index: Index, row: Index
) -> Value:
    """An element minus its row's mean, times the row's inverse deviation."""
    value = upcast(input.at(index), accumulator_dtype(input.dtype))
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
        meta = b.output_meta(output)
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
    leading_rank = input.rank - len(normalized_shape)
    dims = tuple(range(leading_rank, input.rank))
    accumulate = accumulator_dtype(input.dtype)
    stabilizer = 2 * accumulate.eps if eps is None else eps
    inverse = sum_over(
        b,
        input,
        dims,
        dtype=accumulate,
        before=lambda x, _: x * x,
        after=_inverse_deviation(reduced_count(input, dims), stabilizer),
    )

    def read(index: Index) -> Value:
        normalized = _normalize_element(
            input, None, inverse, index, (*index[:leading_rank], *(_ZERO for _ in dims))
        )
        return scale_and_shift(normalized, weight, None, index[leading_rank:])

    return _with_statistics(b, b.pointwise(input.size, b.output_meta().dtype, read), inverse)


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
    group_channels = simplify(FloorDiv(channels, groups))
    split = reshape(b, input, (input.size[0], groups, group_channels, *input.size[2:]))
    dims = tuple(range(2, split.rank))
    average, inverse = moments(b, split, dims, _inverse_deviation(reduced_count(split, dims), eps))

    def read(index: Index) -> Value:
        row = (index[0], FloorDiv(index[1], group_channels), *(_ZERO for _ in dims))
        normalized = _normalize_element(input, average, inverse, index, row)
        return scale_and_shift(normalized, weight, bias, index[1:2])

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


def batch_norm(
    b: Builder,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    **_: Any,
) -> Any:
    """The results of the op: the normalised input, the batch's mean and inverse deviation."""
    result, average, inverse, _, _ = _normalize_batch(
        b, input, weight, bias, running_mean, running_var, bool(training), momentum, eps
    )
    assert b.node is not None
    return (result, average, inverse)[: len(b.node.outputs)] if len(b.node.outputs) > 1 else result


def functional_batch_norm(
    b: Builder,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
    training: bool = True,
) -> tuple[Tensor, ...]:
    """Also returns the new running statistics, last. The reserve that torch keeps for the gradient,
    if the op has it, comes before them and is empty."""
    result = _normalize_batch(
        b, input, weight, bias, running_mean, running_var, bool(training), momentum, eps
    )
    assert b.node is not None
    reserve = (_empty(b, 3),) if len(b.node.outputs) == 6 else ()
    return (*result[:3], *reserve, *result[3:])


def batch_norm_with_reserve(training: bool) -> Callable[..., tuple[Tensor, ...]]:
    """Forms with a fourth result, the reserve, which is empty unless a device library fills it."""

    def rule(
        b: Builder,
        input: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        momentum: float,
        eps: float,
    ) -> tuple[Tensor, ...]:
        result = _normalize_batch(
            b, input, weight, bias, running_mean, running_var, training, momentum, eps
        )
        return (*result[:3], _empty(b, 3))

    return rule


def _empty(b: Builder, output: int) -> Tensor:
    meta = b.output_meta(output)
    return full(meta.size, 0, meta.dtype)


def _normalize_batch(
    b: Builder,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Any, ...]:
    """(output, mean, inverse deviation, new running mean, new running variance)."""
    assert b.node is not None
    accumulate = accumulator_dtype(input.dtype)
    average: Tensor
    variance: Tensor
    if input.rank < 2:  # an empty input: torch accepts it
        saved_statistics = (_empty(b, 1), _empty(b, 2)) if len(b.node.outputs) > 1 else (None, None)
        return input, *saved_statistics, running_mean, running_var
    if training:
        average, variance = _statistics(b, input)
    elif running_mean is None or running_var is None:
        raise Unsupported("batch_norm with missing running statistics is not supported")
    else:
        average, variance = running_mean, running_var

    def inverse(channel: Index) -> Value:
        stable_variance = upcast(variance.at(channel), accumulate) + eps
        return call("rsqrt", stable_variance)

    def read(index: Index) -> Value:
        channel = index[1:2]
        mean = upcast(average.at(channel), accumulate)
        centred = upcast(input.at(index), accumulate) - mean
        normalized = centred * inverse(channel)
        return scale_and_shift(normalized, weight, bias, channel)

    result = materialize(b, Tensor(input.size, input.dtype, read))
    if len(b.node.outputs) == 1:
        return result, None, None, None, None
    if training or b.output_meta(1).size != (_ZERO,):
        saved_statistics = _vector(b, 1, average.at), _vector(b, 2, inverse)
    else:  # the CPU saves no statistics in inference
        saved_statistics = _empty(b, 1), _empty(b, 2)
    if not training or len(b.node.outputs) < 5 or running_mean is None or running_var is None:
        return result, *saved_statistics, running_mean, running_var
    number = reduced_count(input, (0, *range(2, input.rank)))

    def unbiased(index: Index) -> Value:
        value = variance.at(index)
        count, degrees_of_freedom = (
            Cast(index_value(n), value.dtype) for n in (number, number - 1)
        )
        return value * (count / degrees_of_freedom)

    return (
        result,
        *saved_statistics,
        _running_average(b, running_mean, average.at, momentum),
        _running_average(b, running_var, unbiased, momentum),
    )


def _statistics(b: Builder, input: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and biased variance of each channel, [C]."""
    dims = (0, *range(2, input.rank))
    number = reduced_count(input, dims)
    sum_dtype, accumulate = statistics_type(input.dtype), accumulator_dtype(input.dtype)
    average, variance = moments(
        b,
        input,
        dims,
        lambda acc, _: divide_by_count(acc, number),
        dtype=accumulate,
        stored_dtype=sum_dtype,
    )

    def by_channel(tensor: Tensor) -> Tensor:
        zeros = (_ZERO,) * (input.rank - 2)
        return Tensor(
            input.size[1:2],
            accumulate,
            lambda i: upcast(tensor.at((_ZERO, *i, *zeros)), accumulate),
        )

    return by_channel(average), by_channel(variance)


def _vector(b: Builder, output: int, read: Callable[[Index], Value]) -> Tensor:
    meta = b.output_meta(output)
    return b.pointwise(meta.size, meta.dtype, read)


def _running_average(
    b: Builder, running: Tensor, read: Callable[[Index], Value], momentum: float
) -> Tensor:
    """momentum * batch statistic + (1 - momentum) * running statistic."""
    compute_dtype = running.dtype.compute_dtype

    def new_average(index: Index) -> Value:
        batch_part = trees.scale_value(upcast(read(index), compute_dtype), momentum, compute_dtype)
        running_part = trees.scale_value(
            upcast(running.at(index), compute_dtype), 1 - momentum, compute_dtype
        )
        return batch_part + running_part

    return b.pointwise(running.size, running.dtype, new_average)


def instance_norm(
    b: Builder,
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool = True,
    eps: float = 1e-5,
    **_: Any,
) -> Any:
    """Normalise each channel of each sample: group_norm with one channel per group.

    Running statistics are then not read; if they are to be updated, the export contains explicit
    writes.
    """
    if not use_input_stats:
        return batch_norm(b, input, weight, bias, running_mean, running_var, False, 0.1, eps)
    if running_mean is not None:
        raise Unsupported("instance_norm that updates running statistics is not supported")
    if not input.size[1].is_Integer:
        raise Unsupported("instance_norm with a symbolic number of channels is not supported")
    return group_norm(b, input, input.size[1], weight, bias, eps)
