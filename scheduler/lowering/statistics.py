# ruff: noqa: ARG001 - rules have the signature of their op
"""Counts, extrema, histograms, and sums and means that ignore NaN."""

from __future__ import annotations

from typing import Any

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import as_expr
from scheduler.ir.index.simplify import product
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value, call, const, upcast
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.compose import lazy_elementwise
from scheduler.lowering.pointwise import materialize
from scheduler.lowering.reductions import (
    accumulator_dtype,
    normalize_dims,
    reduce,
    sum_op,
    sum_over,
)
from scheduler.lowering.scatter import Sources, count_sources
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import reshape


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
            size=b.output_meta(output).size,
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
        size=b.output_meta().size,
    )


def nansum(b: Builder, self: Tensor, dim: Any = None, **_: Any) -> Tensor:
    """The sum of the elements that are not NaN."""
    if not self.dtype.is_float:
        return sum_op(b, self, dim)
    return sum_op(b, _nan_to_zero(self), dim)


def _nan_to_zero(tensor: Tensor) -> Tensor:
    """Replace NaN by 0."""
    return lazy_elementwise(
        (tensor,), lambda x: call("where", call("isnan", x), 0, x), tensor.dtype
    )


def nanmean(b: Builder, self: Tensor, dim: Any = None, **_: Any) -> Tensor:
    """The mean of the elements that are not NaN."""
    meta = b.output_meta()
    accumulate = accumulator_dtype(meta.dtype)
    dims = normalize_dims(dim, self.rank)

    def counted(value: Value, _: Index) -> Value:
        return call("where", call("isnan", value), const(0, accumulate), const(1, accumulate))

    count = sum_over(b, self, dims, dtype=accumulate, size=meta.size, before=counted)
    return sum_over(
        b,
        _nan_to_zero(self),
        dims,
        dtype=meta.dtype,
        accumulate=accumulate,
        size=meta.size,
        after=lambda acc, index: acc / count.at(index),
    )


def histc(b: Builder, self: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Tensor:
    """Bins of equal width from ``min`` to ``max``; the last one includes its end. Without a range,
    the range of the elements is used. Elements outside, and NaN, are in no bin."""
    flat = reshape(b, self, (product(self.size),))
    compute_dtype = self.dtype.compute_dtype
    low, high = _bin_range(b, flat, float(min), float(max), compute_dtype)

    def is_in_range(i: Index) -> Value:
        value = upcast(flat.at(i), compute_dtype)
        return trees.all_of(value >= low, value <= high)

    def bin_of(i: Index) -> tuple[Value]:
        offset = upcast(flat.at(i), compute_dtype) - low
        scaled_offset = offset * bins
        bin_number = scaled_offset / (high - low)
        bin_index = trees.cast(bin_number, DType.I64)
        return (call("minimum", bin_index, bins - 1),)

    size: tuple[Expr, ...] = (as_expr(bins),)
    counts = count_sources(b, size, Sources(flat.size, bin_of, flat.at, is_in_range))
    return materialize(b, Tensor(size, self.dtype, lambda i: upcast(counts.at(i), self.dtype)))


def _bin_range(
    b: Builder, flat: Tensor, low: float, high: float, dtype: DType
) -> tuple[Value, Value]:
    """The ends of the range: those of the elements if ``low`` equals ``high``. If all elements are
    equal, the range is extended by 1 on both sides."""
    if low != high:
        return const(low, dtype), const(high, dtype)
    minimum, maximum = (
        b.reduction((), flat.size, kind, lambda _, r: flat.at(r), dtype=dtype, accumulate=dtype).at(
            ()
        )
        for kind in (ReductionKind.MIN, ReductionKind.MAX)
    )
    is_constant = call("eq", minimum, maximum)
    return (
        call("where", is_constant, minimum - 1, minimum),
        call("where", is_constant, maximum + 1, maximum),
    )
