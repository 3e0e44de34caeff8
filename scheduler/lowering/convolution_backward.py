"""Gradients of convolutions: a transposed convolution for the input, a product over all positions
for the weight, a sum for the bias."""

from __future__ import annotations

from typing import Any

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv
from scheduler.ir.index.simplify import simplify
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value, const, upcast
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.conv_transpose import transposed_convolution
from scheduler.lowering.convolution import convolved
from scheduler.lowering.matmul import Operand, contract
from scheduler.lowering.reductions import accumulator_type, sum_over
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.windows import Window, make_window


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
    steps, parts = (stride, padding, dilation), int(groups)
    by_input, by_weight, by_bias = output_mask
    found: list[Tensor | None] = [None, None, None]
    if by_input:
        make = convolved if transposed else transposed_convolution
        found[0] = make(b, grad_output, weight, None, steps, parts, input.size, input.dtype)
    if by_weight:
        # A transposed convolution swaps the roles of input and gradient.
        moving, fixed = (grad_output, input) if transposed else (input, grad_output)
        found[1] = _weight_gradient(b, moving, fixed, weight, steps, parts)
    if by_bias:
        dims = tuple(d for d in range(grad_output.rank) if d != 1)
        meta = b.meta(2)
        accumulate = accumulator_type(meta.dtype)
        found[2] = sum_over(
            b, grad_output, dims, dtype=meta.dtype, accumulate=accumulate, size=meta.size
        )
    return tuple(found)


def _weight_gradient(
    b: Builder,
    moving: Tensor,
    fixed: Tensor,
    weight: Tensor,
    steps: tuple[Any, Any, Any],
    groups: int,
) -> Tensor:
    """out[o, c, t] = sum over n, p of fixed[n, o, p] * moving[n, c, window(p, t)]."""
    view = make_window(moving.size, fixed.size, weight.size[2:], *steps)
    if not weight.dtype.is_float or (groups > 1 and weight.size[1] == 1):
        return _summed(b, moving, fixed, weight, view, groups)
    in_each = weight.size[1]
    out_each = simplify(FloorDiv(weight.size[0], sympy.Integer(groups)))
    zero = const(0, moving.dtype)

    def channel(g: Index, own: Expr, each: Expr) -> Expr:
        return g[0] * each + own if g else own

    def left(g: Index, m: Index, k: Index) -> Value:
        return fixed.at((k[0], channel(g, m[0], out_each), *k[1:]))

    def right(g: Index, n: Index, k: Index) -> Value:
        place = view.place(k[1:], n[1:])
        value = moving.at((k[0], channel(g, n[0], in_each), *place))
        return trees.masked_value(view.inside(place), value, zero)

    return contract(
        b,
        problem=f"conv{len(view.kernel)}d_weight",
        template="gemm",
        batch=(sympy.Integer(groups),) if groups > 1 else (),
        k=(fixed.size[0], *view.output),
        left=Operand((out_each,), left),
        right=Operand((in_each, *view.kernel), right),
        size=weight.size,
        place=lambda g, m, n: (channel(g, m[0], out_each), *n),
        dtype=weight.dtype,
    )


def _summed(
    b: Builder, moving: Tensor, fixed: Tensor, weight: Tensor, view: Window, groups: int
) -> Tensor:
    """The weight gradient without matrix instructions: one channel per group, or integers."""
    accumulate = accumulator_type(weight.dtype)
    in_each = weight.size[1]
    out_each = simplify(FloorDiv(weight.size[0], sympy.Integer(groups)))

    def read(index: Index, along: Index) -> Value:
        place = view.place(along[1:], index[2:])
        channel = FloorDiv(index[0], out_each) * in_each + index[1]
        x = upcast(moving.at((along[0], channel, *place)), accumulate)
        x = trees.masked_value(view.inside(place), x, const(0, accumulate))
        return x * upcast(fixed.at((along[0], index[0], *along[1:])), accumulate)

    return b.reduction(
        weight.size,
        (fixed.size[0], *view.output),
        ReductionKind.SUM,
        read,
        dtype=weight.dtype,
        accumulate=accumulate,
    )
