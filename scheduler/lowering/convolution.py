# ruff: noqa: ARG001 - rules have the signature of their op
"""Convolutions of one to three dimensions as contractions over a window of the input, and their
gradients."""

from __future__ import annotations

from typing import Any

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv
from scheduler.ir.index.simplify import simplify
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value, const, upcast
from scheduler.lowering import channels_last, trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.conv_transpose import plus_bias, transposed_convolution
from scheduler.lowering.matmul import Operand, contract
from scheduler.lowering.reductions import accumulator_dtype, sum_over
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import reshape
from scheduler.lowering.windows import Window, expand_to_rank, make_window

_ONE = sympy.Integer(1)
# Limits of the depthwise kernel: the registers of a thread grow with both.
_MAX_DIMS, _MAX_TAPS = 2, 11


def convolution(
    b: Builder,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    transposed: bool = False,
    output_padding: Any = 0,
    groups: int = 1,
    **_: Any,
) -> Tensor:
    """out[n, o, p] = sum over c, t of x[n, c, window(p, t)] * w[o, c, t], then bias by channel."""
    size = b.output_meta().size
    if input.rank == weight.rank - 1:
        input = input.view((_ONE, *input.size), lambda i: i[1:])
        size = (_ONE, *size)
    rule = transposed_convolution if transposed else convolved
    if padding == "valid":
        padding = 0
    elif padding == "same":  # if odd, the larger half is at the end, where windows leave the input
        spacing = expand_to_rank(dilation, weight.rank - 2)
        kernel = zip(weight.size[2:], spacing, strict=True)
        padding = tuple((int(k) - 1) * d // 2 for k, d in kernel)
    steps = (stride, padding, dilation)
    result = rule(b, input, weight, bias, steps, int(groups), size, b.output_meta().dtype)
    return reshape(b, result, b.output_meta().size)


def conv_transpose(
    b: Builder,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """``output_padding`` only affects the result's shape."""
    return convolution(
        b, input, weight, bias, stride, padding, dilation, True, output_padding, groups
    )


def convolved(
    b: Builder,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    steps: tuple[Any, Any, Any],
    groups: int,
    size: tuple[Expr, ...],
    dtype: DType,
) -> Tensor:
    """The convolution of ``input`` [N, C, ...] into ``size`` [N, O, ...]; ``steps`` are stride,
    padding and dilation."""
    view = make_window(input.size, size, weight.size[2:], *steps)
    if channels_last.is_profitable(input, weight, size, groups, b.hints):
        input, weight = (channels_last.to_channels_last(b, operand) for operand in (input, weight))
    if dtype.is_float and _is_depthwise(input, weight, groups):
        return _depthwise(b, input, weight, bias, view, size, dtype)
    if not dtype.is_float or (groups > 1 and weight.size[1] == 1):
        return _summed(b, input, weight, bias, view, groups, size, dtype)
    return _grouped(b, input, weight, bias, view, groups, size, dtype)


def _is_depthwise(input: Tensor, weight: Tensor, groups: int) -> bool:
    """Whether each channel of a tensor in memory has one small filter of its own."""
    kernel = weight.size[2:]
    return (
        groups > 1
        and weight.size[1] == 1
        and weight.size[0] == groups
        and bool(input.buffer and weight.buffer)
        and input.dtype is weight.dtype
        and 1 <= len(kernel) <= _MAX_DIMS
        and all(k.is_Integer and 0 < k <= _MAX_TAPS for k in kernel)
    )


def _depthwise(
    b: Builder,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    view: Window,
    size: tuple[Expr, ...],
    dtype: DType,
) -> Tensor:
    """Depthwise convolution. Axes are not merged: a thread reads an input row once for several
    results."""
    zero = const(0, input.dtype)

    def left(g: Index, m: Index, k: Index) -> Value:
        input_index = view.input_index(m[1:], k)
        return trees.masked_value(
            view.inside(input_index), input.at((m[0], g[0], *input_index)), zero
        )

    def right(g: Index, n: Index, k: Index) -> Value:
        return weight.at((g[0], n[0], *k))

    return contract(
        b,
        problem=f"conv{len(view.kernel)}d",
        template="depthwise",
        batch=(size[1],),
        k=view.kernel,
        left=Operand((size[0], *view.output), left),
        right=Operand((_ONE,), right),
        size=size,
        result_index=lambda g, m, _: (m[0], g[0], *m[1:]),
        dtype=dtype,
        epilogue=plus_bias(bias),
        merge=False,
    )


def _grouped(
    b: Builder,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    view: Window,
    groups: int,
    size: tuple[Expr, ...],
    dtype: DType,
) -> Tensor:
    group_inputs = weight.size[1]
    group_outputs = simplify(FloorDiv(weight.size[0], sympy.Integer(groups)))
    zero = const(0, input.dtype)
    batch = (sympy.Integer(groups),) if groups > 1 else ()

    def left(g: Index, m: Index, k: Index) -> Value:
        input_index = view.input_index(m[1:], k[1:])
        channel = g[0] * group_inputs + k[0] if g else k[0]
        return trees.masked_value(
            view.inside(input_index), input.at((m[0], channel, *input_index)), zero
        )

    def right(g: Index, n: Index, k: Index) -> Value:
        channel = g[0] * group_outputs + n[0] if g else n[0]
        return weight.at((channel, *k))

    return contract(
        b,
        problem=f"conv{len(view.kernel)}d",
        template="convolution",
        batch=batch,
        k=(group_inputs, *view.kernel),
        left=Operand((size[0], *view.output), left),
        right=Operand((group_outputs,), right),
        size=size,
        result_index=lambda g, m, n: (m[0], g[0] * group_outputs + n[0] if g else n[0], *m[1:]),
        dtype=dtype,
        epilogue=plus_bias(bias),
    )


def _summed(
    b: Builder,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    view: Window,
    groups: int,
    size: tuple[Expr, ...],
    dtype: DType,
) -> Tensor:
    """A sum over the window, for cases without matrix instructions: one input channel per group, or
    integers."""
    accumulate = accumulator_dtype(dtype)
    group_outputs = simplify(FloorDiv(weight.size[0], sympy.Integer(groups)))
    group_inputs = weight.size[1]

    def read(index: Index, tap: Index) -> Value:
        input_index = view.input_index(index[2:], tap[1:])
        group = index[1] if group_outputs == 1 else FloorDiv(index[1], group_outputs)
        x = upcast(input.at((index[0], group * group_inputs + tap[0], *input_index)), accumulate)
        x = trees.masked_value(view.inside(input_index), x, const(0, accumulate))
        return x * upcast(weight.at((index[1], *tap)), accumulate)

    return b.reduction(
        size,
        (group_inputs, *view.kernel),
        ReductionKind.SUM,
        read,
        dtype=dtype,
        accumulate=accumulate,
        after=plus_bias(bias),
    )


def convolution_backward(
    b: Builder,
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    groups: int,
    output_mask: tuple[bool, ...],
    **_: Any,
) -> tuple[Tensor | None, ...]:
    """Gradients of input, weight and bias; None for those that ``output_mask`` excludes."""
    steps, group_count = (stride, padding, dilation), int(groups)
    needs_input, needs_weight, needs_bias = output_mask
    gradients: list[Tensor | None] = [None, None, None]
    if needs_input:
        gradient_rule = convolved if transposed else transposed_convolution
        gradients[0] = gradient_rule(
            b, grad_output, weight, None, steps, group_count, input.size, input.dtype
        )
    if needs_weight:
        # A transposed convolution swaps the roles of input and gradient.
        windowed, fixed = (grad_output, input) if transposed else (input, grad_output)
        gradients[1] = _weight_gradient(b, windowed, fixed, weight, steps, group_count)
    if needs_bias:
        dims = tuple(d for d in range(grad_output.rank) if d != 1)
        meta = b.output_meta(2)
        accumulate = accumulator_dtype(meta.dtype)
        gradients[2] = sum_over(
            b, grad_output, dims, dtype=meta.dtype, accumulate=accumulate, size=meta.size
        )
    return tuple(gradients)


def _weight_gradient(
    b: Builder,
    windowed: Tensor,
    fixed: Tensor,
    weight: Tensor,
    steps: tuple[Any, Any, Any],
    groups: int,
) -> Tensor:
    """out[o, c, t] = sum over n, p of fixed[n, o, p] * moving[n, c, window(p, t)]."""
    view = make_window(windowed.size, fixed.size, weight.size[2:], *steps)
    if not weight.dtype.is_float or (groups > 1 and weight.size[1] == 1):
        return _summed_weight_gradient(b, windowed, fixed, weight, view, groups)
    group_inputs = weight.size[1]
    group_outputs = simplify(FloorDiv(weight.size[0], sympy.Integer(groups)))
    zero = const(0, windowed.dtype)

    def channel(g: Index, local: Expr, group_size: Expr) -> Expr:
        return g[0] * group_size + local if g else local

    def left(g: Index, m: Index, k: Index) -> Value:
        return fixed.at((k[0], channel(g, m[0], group_outputs), *k[1:]))

    def right(g: Index, n: Index, k: Index) -> Value:
        input_index = view.input_index(k[1:], n[1:])
        value = windowed.at((k[0], channel(g, n[0], group_inputs), *input_index))
        return trees.masked_value(view.inside(input_index), value, zero)

    return contract(
        b,
        problem=f"conv{len(view.kernel)}d_weight",
        template="gemm",
        batch=(sympy.Integer(groups),) if groups > 1 else (),
        k=(fixed.size[0], *view.output),
        left=Operand((group_outputs,), left),
        right=Operand((group_inputs, *view.kernel), right),
        size=weight.size,
        result_index=lambda g, m, n: (channel(g, m[0], group_outputs), *n),
        dtype=weight.dtype,
    )


def _summed_weight_gradient(
    b: Builder, windowed: Tensor, fixed: Tensor, weight: Tensor, view: Window, groups: int
) -> Tensor:
    """The weight gradient without matrix instructions: one channel per group, or integers."""
    accumulate = accumulator_dtype(weight.dtype)
    group_inputs = weight.size[1]
    group_outputs = simplify(FloorDiv(weight.size[0], sympy.Integer(groups)))

    def read(index: Index, reduction_index: Index) -> Value:
        input_index = view.input_index(reduction_index[1:], index[2:])
        channel = FloorDiv(index[0], group_outputs) * group_inputs + index[1]
        x = upcast(windowed.at((reduction_index[0], channel, *input_index)), accumulate)
        x = trees.masked_value(view.inside(input_index), x, const(0, accumulate))
        return x * upcast(
            fixed.at((reduction_index[0], index[0], *reduction_index[1:])), accumulate
        )

    return b.reduction(
        weight.size,
        (fixed.size[0], *view.output),
        ReductionKind.SUM,
        read,
        dtype=weight.dtype,
        accumulate=accumulate,
    )
