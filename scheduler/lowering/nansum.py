"""Sums and means that ignore NaN: reductions of values computed on the fly."""

from __future__ import annotations

from typing import Any

from scheduler.ir.values import Value, call, const
from scheduler.lowering.builder import Builder
from scheduler.lowering.compose import lazy_elementwise
from scheduler.lowering.reductions import accumulator_type, normalize_dims, sum_op, sum_over
from scheduler.lowering.tensor import Index, Tensor


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
    meta = b.meta()
    accumulate = accumulator_type(meta.dtype)
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
