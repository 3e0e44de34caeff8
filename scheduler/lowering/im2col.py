# ruff: noqa: ARG001 - rules have the signature of their op
"""Windows as columns of a matrix (im2col, F.unfold), and their sum back into an image (col2im,
F.fold), where each pixel gathers from the windows that touch it."""

from __future__ import annotations

from typing import Any

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv, Mod
from scheduler.ir.index.simplify import product, simplify
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value, const, upcast
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.pointwise import materialize
from scheduler.lowering.reductions import accumulator_dtype
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.windows import Window, expand_to_rank, inverse_window, make_window


def _view(
    size: tuple[Expr, ...], kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> Window:
    kernel = expand_to_rank(kernel_size, 2)
    steps = [expand_to_rank(per_dim, 2) for per_dim in (stride, padding, dilation)]
    counts = tuple(
        simplify(FloorDiv(n + 2 * p - d * (k - 1) - 1, sympy.Integer(s)) + 1)
        for n, k, s, p, d in zip(size[-2:], kernel, *steps, strict=True)
    )
    return make_window(size, counts, kernel, *steps)


def im2col(
    b: Builder, self: Tensor, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> Tensor:
    """out[n, (c, kh, kw), (i, j)] = x[n, c, window (i, j) at tap (kh, kw)], 0 in the padding."""
    meta = b.output_meta()
    view = _view(self.size, kernel_size, dilation, padding, stride)
    taps, (width, columns) = product(view.kernel), (view.kernel[1], view.output[1])

    def read(index: Index) -> Value:
        *batch, row, column = index
        channel, tap = FloorDiv(row, taps), Mod(row, taps)
        input_index = view.input_index(
            (FloorDiv(column, columns), Mod(column, columns)),
            (FloorDiv(tap, width), Mod(tap, width)),
        )
        value = self.at((*batch, channel, *input_index))
        return trees.masked_value(view.inside(input_index), value, const(0, value.dtype))

    return materialize(b, Tensor(meta.size, meta.dtype, read))


def col2im(
    b: Builder,
    self: Tensor,
    output_size: Any,
    kernel_size: Any,
    dilation: Any,
    padding: Any,
    stride: Any,
) -> Tensor:
    meta = b.output_meta()
    view = _view(meta.size, kernel_size, dilation, padding, stride)
    windows, accumulate = inverse_window(view), accumulator_dtype(meta.dtype)
    taps = product(view.kernel)

    def read(index: Index, tap: Index) -> Value:
        *batch, channel, _, _ = index
        (i, j), (y, x), touches = windows.at(index[-2:], tap)
        row = channel * taps + y * view.kernel[1] + x
        value = upcast(self.at((*batch, row, i * view.output[1] + j)), accumulate)
        return trees.masked_value(touches, value, const(0, accumulate))

    return b.reduction(
        meta.size, windows.taps, ReductionKind.SUM, read, dtype=meta.dtype, accumulate=accumulate
    )
