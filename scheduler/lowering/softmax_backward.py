"""Gradients of softmax and log_softmax: a sum over each row, then a pointwise operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy

from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value, call, upcast
from scheduler.lowering.builder import Builder
from scheduler.lowering.reductions import normalize_dims, reduce
from scheduler.lowering.tensor import Index, Tensor


def softmax_backward(log: bool) -> Callable[..., Tensor]:
    """``y (g - sum(g y))``; for the logarithm ``g - exp(y) sum(g)``."""

    def rule(b: Builder, grad_output: Tensor, output: Tensor, dim: int, **_: Any) -> Tensor:
        meta = b.meta()
        held = output.dtype.compute_dtype
        dims = normalize_dims(dim, output.rank)

        def weighed(value: Value, place: Index) -> Value:
            return value * upcast(output.at(place), held)

        total = reduce(
            b,
            grad_output,
            dims,
            ReductionKind.SUM,
            dtype=held,
            accumulate=held,
            before=None if log else weighed,
        )

        def read(index: Index) -> Value:
            at = tuple(sympy.Integer(0) if d in dims else i for d, i in enumerate(index))
            g, y = (upcast(t.at(index), held) for t in (grad_output, output))
            if log:
                return g - call("exp", y) * total.at(at)
            return y * (g - total.at(at))

        return b.pointwise(meta.size, meta.dtype, read)

    return rule
