# ruff: noqa: ARG001 - rules have the signature of their op
"""Convolutions of one to three dimensions as contractions over a window of the input."""

from __future__ import annotations

from typing import Any

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv
from scheduler.ir.index.simplify import simplify
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.matmul import Operand, contract
from scheduler.lowering.reductions import accumulator_type
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.trees import call, const
from scheduler.lowering.views import reshape
from scheduler.lowering.windows import Window, spread, window

_ONE = sympy.Integer(1)


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
) -> Tensor:
    """out[n, o, p] = sum over c, t of x[n, c, window(p, t)] * w[o, c, t], then bias by channel."""
    if transposed:
        raise Unsupported("a transposed convolution")
    if not b.meta().dtype.is_float:
        raise Unsupported("a convolution of integers")
    rank = weight.rank - 2
    size = b.meta().size
    if input.rank == rank + 1:
        input = input.view((_ONE, *input.size), lambda i: i[1:])
        size = (_ONE, *size)
    pads = _padding(padding, weight.size[2:], dilation, rank)
    view = window(input.size, size, weight.size[2:], stride, pads, dilation)
    in_each, outputs = weight.size[1], weight.size[0]
    out_each = simplify(FloorDiv(outputs, sympy.Integer(groups)))
    if groups > 1 and in_each == 1:
        made = _depthwise(b, input, weight, bias, view, out_each, size)
    else:
        made = _grouped(b, input, weight, bias, view, groups, size)
    return reshape(b, made, b.meta().size)


def _padding(padding: Any, kernel: tuple[Expr, ...], dilation: Any, rank: int) -> Any:
    """What is added before each spatial dimension, from torch's words for a padding.

    Where 'same' is uneven, the larger half is behind: there the window only leaves the input.
    """
    if padding == "valid":
        return 0
    if padding != "same":
        return padding
    steps = spread(dilation, rank)
    return tuple((int(k) - 1) * d // 2 for k, d in zip(kernel, steps, strict=True))


def _grouped(
    b: Builder,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    view: Window,
    groups: int,
    size: tuple[Expr, ...],
) -> Tensor:
    in_each = weight.size[1]
    out_each = simplify(FloorDiv(weight.size[0], sympy.Integer(groups)))
    zero = const(0, input.dtype)
    batch = (sympy.Integer(groups),) if groups > 1 else ()

    def left(g: Index, m: Index, k: Index) -> Value:
        place = view.place(m[1:], k[1:])
        channel = g[0] * in_each + k[0] if g else k[0]
        return trees.masked(view.inside(place), input.at((m[0], channel, *place)), zero)

    def right(g: Index, n: Index, k: Index) -> Value:
        channel = g[0] * out_each + n[0] if g else n[0]
        return weight.at((channel, *k))

    def epilogue(acc: Value, index: Index) -> Value:
        assert bias is not None
        return call("add", acc, trees.held(bias.at(index[1:2]), acc.dtype))

    return contract(
        b,
        problem=f"conv{len(view.kernel)}d",
        template="convolution",
        batch=batch,
        k=(in_each, *view.kernel),
        left=Operand((size[0], *view.output), left),
        right=Operand((out_each,), right),
        size=size,
        place=lambda g, m, n: (m[0], g[0] * out_each + n[0] if g else n[0], *m[1:]),
        dtype=b.meta().dtype,
        epilogue=None if bias is None else epilogue,
    )


def _depthwise(
    b: Builder,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    view: Window,
    out_each: Expr,
    size: tuple[Expr, ...],
) -> Tensor:
    """One input channel a group: a sum over the window, with nothing for matrix instructions."""
    meta = b.meta()
    held = accumulator_type(meta.dtype)

    def read(index: Index, tap: Index) -> Value:
        place = view.place(index[2:], tap)
        channel = index[1] if out_each == 1 else FloorDiv(index[1], out_each)
        x = trees.held(input.at((index[0], channel, *place)), held)
        x = trees.masked(view.inside(place), x, const(0, held))
        return call("mul", x, trees.held(weight.at((index[1], sympy.Integer(0), *tap)), held))

    def after(acc: Value, index: Index) -> Value:
        if bias is None:
            return acc
        return call("add", acc, trees.held(bias.at(index[1:2]), held))

    return b.reduction(
        size,
        view.kernel,
        ReductionKind.SUM,
        read,
        dtype=meta.dtype,
        accumulate=held,
        after=after,
    )
