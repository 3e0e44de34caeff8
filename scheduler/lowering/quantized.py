"""Products of quantized tensors: what is scaled is multiplied as it lies, scales come after."""

# ruff: noqa: ARG001 - rules have the signature of their op

from __future__ import annotations

from typing import Any

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.facts import is_equal
from scheduler.ir.values import Value
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.matmul import matmul
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import broadcast

_ONE, _ZERO = sympy.Integer(1), sympy.Integer(0)


def scaled_mm(
    b: Builder,
    self: Tensor,
    mat2: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    scale_result: Tensor | None = None,
    out_dtype: Any = None,
    use_fast_accum: bool = False,
) -> Tensor:
    """``(self * scale_a) @ (mat2 * scale_b) + bias`` of matrices of 8-bit floats.

    A scale is one number, or one for each row of ``self`` and each column of ``mat2``.
    ``use_fast_accum`` lets hardware be less exact, ``scale_result`` counts for results of 8 bits
    alone, and on NVIDIA's GPUs alone.
    """
    dtype = b.meta().dtype
    if scale_result is not None and dtype.is_float8:
        raise Unsupported("a scale of the result, which torch takes on GPUs and leaves out on CPUs")
    rows = _scale(scale_a, (self.size[0], _ONE))
    columns = _scale(scale_b, (_ONE, mat2.size[1]))

    def epilogue(accumulator: Value, index: Index) -> Value:
        held = accumulator.dtype
        result = accumulator
        for factor in (rows.at((index[0], _ZERO)), columns.at((_ZERO, index[1]))):
            result = trees.call("mul", result, trees.held(factor, held))
        if bias is not None:
            added = broadcast(bias, b.meta().size).at(index)
            result = trees.call("add", result, trees.held(added, held))
        return trees.cast(result, dtype) if dtype.is_float8 else result

    return matmul(b, "scaled_mm", self, mat2, epilogue)


def _scale(scale: Tensor, by_line: tuple[Expr, ...]) -> Tensor:
    """A scale over lines: ``by_line`` is the shape of one that has one for each."""
    if all(extent == 1 for extent in scale.size):
        first = (_ZERO,) * scale.rank
        return scale.view(by_line, lambda _: first)
    fits = scale.rank == 2 and all(map(is_equal, scale.size, by_line))
    if not fits:
        raise Unsupported("scales of blocks")
    return scale
