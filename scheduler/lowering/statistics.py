# ruff: noqa: ARG001 - rules have the signature of their op
"""Counts and extrema."""

from __future__ import annotations

from typing import Any

from scheduler.ir.dtypes import DType
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value, call, upcast
from scheduler.lowering.builder import Builder
from scheduler.lowering.reductions import normalize_dims, reduce, sum_over
from scheduler.lowering.tensor import Index, Tensor


def aminmax(b: Builder, self: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    dims = normalize_dims(dim, self.rank)
    kinds = (ReductionKind.MIN, ReductionKind.MAX)
    if self.dtype is DType.BOOL:
        kinds = (ReductionKind.ALL, ReductionKind.ANY)
    return tuple(
        reduce(
            b,
            self,
            dims,
            kind,
            dtype=self.dtype,
            accumulate=self.dtype.compute_dtype,
            size=b.meta(output).size,
        )
        for output, kind in enumerate(kinds)
    )


def count_nonzero(b: Builder, self: Tensor, dim: Any = None) -> Tensor:
    def is_set(index: Index) -> Value:
        value = upcast(self.at(index), self.dtype)
        return upcast(call("ne", value, 0), DType.I64)

    return sum_over(
        b,
        Tensor(self.size, DType.I64, is_set),
        normalize_dims(dim, self.rank),
        dtype=DType.I64,
        size=b.meta().size,
    )
