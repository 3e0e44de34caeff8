# ruff: noqa: ARG001 - rules have the signature of their op
"""softmax, its logarithm, and log-sum-exp: two reductions over the same rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value, call, upcast
from scheduler.lowering.builder import Builder
from scheduler.lowering.reductions import full_index, normalize_dims, reduce, row_index, sum_over
from scheduler.lowering.tensor import Index, Tensor


def lazy_log_softmax(b: Builder, tensor: Tensor, dims: tuple[int, ...], dtype: DType) -> Tensor:
    """(x - max) - log(sum), computed where it is read; only the two reductions are in memory."""
    return _normalize_rows(b, tensor, dims, dtype, log=True, safe=False)


def _normalize_rows(
    b: Builder, tensor: Tensor, dims: tuple[int, ...], dtype: DType, *, log: bool, safe: bool
) -> Tensor:
    """``safe``: a row of only minus infinity gives 0 instead of NaN."""

    def finite(acc: Value, _: Index) -> Value:
        is_lowest = call("eq", acc, -math.inf)
        return call("where", is_lowest, 0, acc) if safe else acc

    maximum = reduce(b, tensor, dims, ReductionKind.MAX, dtype=dtype, after=finite)

    def shifted(value: Value, index: Index) -> Value:
        row = row_index(index, dims)
        return value - maximum.at(row)

    def after(acc: Value, _: Index) -> Value:
        if safe:
            acc = call("where", call("eq", acc, 0), 1, acc)
        return call("log", acc) if log else acc

    total = sum_over(
        b, tensor, dims, dtype=dtype, before=lambda v, i: call("exp", shifted(v, i)), after=after
    )

    def read(index: Index) -> Value:
        x = shifted(upcast(tensor.at(index), dtype), index)
        row = row_index(index, dims)
        if log:
            return x - total.at(row)
        return call("exp", x) / total.at(row)

    return Tensor(tensor.size, dtype, read)


def softmax(log: bool, safe: bool = False) -> Callable[..., Tensor]:
    """exp(x - max) / sum, or the logarithm (x - max) - log(sum)."""

    def rule(b: Builder, self: Tensor, dim: int, **_: Any) -> Tensor:
        meta = b.output_meta()
        dims = normalize_dims(dim, self.rank)
        result = _normalize_rows(b, self, dims, meta.dtype.compute_dtype, log=log, safe=safe)
        return b.pointwise(meta.size, meta.dtype, result.at)

    return rule


def logsumexp(b: Builder, self: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """max + log(sum(exp(x - max))); an infinite maximum counts as 0 in the difference."""
    meta = b.output_meta()
    compute_dtype = meta.dtype.compute_dtype
    dims = normalize_dims(dim, self.rank)

    def finite(acc: Value, _: Index) -> Value:
        return call("where", call("isinf", acc), 0, acc)

    real = compute_dtype.real
    real_parts = self
    if self.dtype.is_complex:  # torch: shifted by the greatest real part
        real_parts = Tensor(
            self.size, real, lambda i: call("real", upcast(self.at(i), compute_dtype))
        )
    maximum = reduce(b, real_parts, dims, ReductionKind.MAX, dtype=real, after=finite)
    keeps = len(meta.size) == self.rank

    def shifted(value: Value, index: Index) -> Value:
        row = row_index(index, dims)
        return call("exp", value - upcast(maximum.at(row), compute_dtype))

    def after(acc: Value, index: Index) -> Value:
        zeros = (sympy.Integer(0),) * len(dims)
        row = index if keeps else full_index(index, zeros, dims, self.rank, False)
        return call("log", acc) + upcast(maximum.at(row), compute_dtype)

    return sum_over(
        b,
        self,
        dims,
        dtype=meta.dtype,
        accumulate=compute_dtype,
        size=meta.size,
        before=shifted,
        after=after,
    )


def softmax_backward(log: bool) -> Callable[..., Tensor]:
    """``y (g - sum(g y))``; for the logarithm ``g - exp(y) sum(g)``."""

    def rule(b: Builder, grad_output: Tensor, output: Tensor, dim: int, **_: Any) -> Tensor:
        meta = b.output_meta()
        compute_dtype = output.dtype.compute_dtype
        dims = normalize_dims(dim, output.rank)

        def weighted(value: Value, index: Index) -> Value:
            return value * upcast(output.at(index), compute_dtype)

        total = sum_over(
            b, grad_output, dims, dtype=compute_dtype, before=None if log else weighted
        )

        def read(index: Index) -> Value:
            row = row_index(index, dims)
            g, y = (upcast(t.at(index), compute_dtype) for t in (grad_output, output))
            if log:
                return g - call("exp", y) * total.at(row)
            return y * (g - total.at(row))

        return b.pointwise(meta.size, meta.dtype, read)

    return rule
