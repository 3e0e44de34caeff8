# ruff: noqa: ARG001 - rules have the signature of their op
"""Reductions and scans."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from typing import Any

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.simplify import product
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Cast, Value, call, index_value, upcast
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.pointwise import elementwise
from scheduler.lowering.pointwise import maximum_or_minimum as extreme_of_two
from scheduler.lowering.tensor import Epilogue, Index, Tensor
from scheduler.lowering.views import normalize_dim, reshape

_ONE = sympy.Integer(1)
_KIND_OF_INFINITE_ORDER = {math.inf: ReductionKind.MAX, -math.inf: ReductionKind.MIN}


def normalize_dims(dim: Any, rank: int) -> tuple[int, ...]:
    """Dimensions from torch's ``dim`` argument: None and () mean all."""
    if dim is None or dim == ():
        return tuple(range(rank))
    dims = dim if isinstance(dim, tuple) else (dim,)
    return tuple(sorted({normalize_dim(d, rank) for d in dims})) if rank else ()


def accumulator_dtype(dtype: DType) -> DType:
    """f32 for f16, bf16 and f32; f64 and complex types unchanged; i64 for integers and booleans."""
    return dtype.accumulator


def statistics_type(dtype: DType) -> DType:
    """The type in which means and variances are summed: f64 for f32, as in torch. In f32 the
    rounding of a large mean would affect every difference from it, and squares of differences above
    1.8e19 would be infinite."""
    return DType.F64 if dtype is DType.F32 else accumulator_dtype(dtype)


def reduce(
    b: Builder,
    tensor: Tensor,
    dims: tuple[int, ...],
    kind: ReductionKind,
    *,
    dtype: DType,
    accumulate: DType | None = None,
    size: tuple[Expr, ...] | None = None,
    before: Callable[[Value, Index], Value] | None = None,
    after: Epilogue | None = None,
) -> Tensor:
    """Reduce the tensor over ``dims``.

    ``before`` is applied to each element (with its index), ``after`` to the accumulator. The result
    keeps the reduced dimensions as 1 unless ``size`` is the shape without them. ``accumulate`` is
    by default the accumulator of ``dtype``.
    """
    accumulate_dtype = accumulate or dtype.accumulator
    kept_size = tuple(_ONE if d in dims else extent for d, extent in enumerate(tensor.size))
    keeps = size is None or len(size) == tensor.rank
    result = kept_size if keeps else tuple(e for d, e in enumerate(tensor.size) if d not in dims)

    def read(index: Index, inner: Index) -> Value:
        element_index = full_index(index, inner, dims, tensor.rank, keeps)
        value = upcast(tensor.at(element_index), accumulate_dtype)
        return value if before is None else before(value, element_index)

    return b.reduction(
        result,
        tuple(tensor.size[d] for d in dims),
        kind,
        read,
        dtype=dtype,
        accumulate=accumulate_dtype,
        after=after,
    )


def sum_over(b: Builder, tensor: Tensor, dims: tuple[int, ...], **options: Any) -> Tensor:
    """The sum over ``dims``; the options are those of ``reduce``."""
    return reduce(b, tensor, dims, ReductionKind.SUM, **options)


def row_index(index: Index, dims: Collection[int]) -> Index:
    """The index of a row: 0 in the reduced dimensions."""
    return tuple(sympy.Integer(0) if d in dims else i for d, i in enumerate(index))


def full_index(index: Index, inner: Index, dims: tuple[int, ...], rank: int, keeps: bool) -> Index:
    """The index of an element, from the result's index and the index along the reduced
    dimensions."""
    outer_indices, inner_indices = iter(index), iter(inner)
    element_index = []
    for d in range(rank):
        if d in dims:
            element_index.append(next(inner_indices))
            if keeps:
                next(outer_indices)
        else:
            element_index.append(next(outer_indices))
    return tuple(element_index)


def reduced_count(tensor: Tensor, dims: Iterable[int]) -> Expr:
    """The number of elements reduced to one result."""
    return product(tuple(tensor.size[d] for d in dims))


def divide_by_count(value: Value, number: Expr) -> Value:
    """``value`` divided by a number of elements."""
    if number.is_Integer and number != 0:
        return value / int(number)
    return value / Cast(index_value(number), value.dtype)


def sum_op(b: Builder, self: Tensor, dim: Any = None, **_: Any) -> Tensor:
    meta = b.output_meta()
    return sum_over(b, self, normalize_dims(dim, self.rank), dtype=meta.dtype, size=meta.size)


def mean(
    b: Builder, tensor: Tensor, dims: tuple[int, ...], dtype: DType, size: Any = None
) -> Tensor:
    """The mean over ``dims``, stored as ``dtype``."""
    number = reduced_count(tensor, dims)
    return sum_over(
        b, tensor, dims, dtype=dtype, size=size, after=lambda acc, _: divide_by_count(acc, number)
    )


def mean_op(b: Builder, self: Tensor, dim: Any = None, **_: Any) -> Tensor:
    meta = b.output_meta()
    return mean(b, self, normalize_dims(dim, self.rank), meta.dtype, meta.size)


def prod(b: Builder, self: Tensor, dim: Any = None, **_: Any) -> Tensor:
    meta = b.output_meta()
    return reduce(
        b,
        self,
        normalize_dims(dim, self.rank),
        ReductionKind.PROD,
        dtype=meta.dtype,
        size=meta.size,
    )


def max_or_min(kind: ReductionKind) -> Callable[..., Any]:
    """amax, amin, and all forms of max and min."""
    index_kind = ReductionKind.ARGMAX if kind is ReductionKind.MAX else ReductionKind.ARGMIN
    pairwise_op = "maximum" if kind is ReductionKind.MAX else "minimum"

    def rule(
        b: Builder, self: Tensor, other: Any = None, dim: Any = None, keepdim: bool = False
    ) -> Any:
        if other is not None:
            return extreme_of_two(pairwise_op)(b, self, other)
        meta = b.output_meta()
        dims = normalize_dims(dim, self.rank)
        b.require_nonempty(self.size, dims)
        value_kind = kind
        if self.dtype is DType.BOOL:
            value_kind = ReductionKind.ANY if kind is ReductionKind.MAX else ReductionKind.ALL
        values = reduce(
            b,
            self,
            dims,
            value_kind,
            dtype=meta.dtype,
            accumulate=meta.dtype.compute_dtype,
            size=meta.size,
        )
        assert b.node is not None
        if len(b.node.outputs) == 1:
            return values
        return values, _reduce_to_index(b, self, dims, index_kind, 1)

    return rule


def _reduce_to_index(
    b: Builder, self: Tensor, dims: tuple[int, ...], kind: ReductionKind, output_number: int
) -> Tensor:
    return reduce(
        b,
        self,
        dims,
        kind,
        dtype=DType.I64,
        accumulate=self.dtype.compute_dtype,
        size=b.output_meta(output_number).size,
    )


def index_rule(kind: ReductionKind) -> Callable[..., Tensor]:
    def rule(b: Builder, self: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
        dims = normalize_dims(dim, self.rank)
        b.require_nonempty(self.size, dims)
        return _reduce_to_index(b, self, dims, kind, 0)

    return rule


def any_or_all(kind: ReductionKind) -> Callable[..., Tensor]:
    def rule(b: Builder, self: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
        meta = b.output_meta()
        return reduce(
            b,
            self,
            normalize_dims(dim, self.rank),
            kind,
            dtype=meta.dtype,
            accumulate=DType.BOOL,
            size=meta.size,
        )

    return rule


def moments(
    b: Builder,
    tensor: Tensor,
    dims: tuple[int, ...],
    finish: Epilogue,
    dtype: DType | None = None,
    stored_dtype: DType | None = None,
) -> tuple[Tensor, Tensor]:
    """The mean, and ``finish`` of the sum of squared differences from it.

    Two passes over the data, as in torch, avoid cancellation. Both results keep the reduced
    dimensions and are stored as ``stored_dtype``, by default f32 (f64 for f64), the second as
    ``dtype`` if given.
    """
    stored_dtype = stored_dtype or accumulator_dtype(tensor.dtype)
    average = mean(b, tensor, dims, stored_dtype)

    def distance(index: Index) -> Value:
        row = row_index(index, dims)
        return upcast(tensor.at(index), stored_dtype) - average.at(row)

    spread = sum_over(
        b,
        Tensor(tensor.size, stored_dtype.real, lambda index: square(distance(index))),
        dims,
        dtype=dtype or stored_dtype.real,
        accumulate=stored_dtype.real,
        after=finish,
    )
    return average, spread


def square(value: Value) -> Value:
    """The square; for complex numbers, of the magnitude."""
    if not value.dtype.is_complex:
        return value * value
    parts = call("real", value), call("imag", value)
    return call("add", *(part * part for part in parts))


def variance(root: bool, with_mean: bool) -> Callable[..., Any]:
    def rule(
        b: Builder,
        self: Tensor,
        dim: Any = None,
        unbiased: bool = True,
        correction: Any = None,
        keepdim: bool = False,
    ) -> Any:
        meta = b.output_meta()
        dims = normalize_dims(dim, self.rank)
        removed_count = (1 if unbiased else 0) if correction is None else correction
        number = reduced_count(self, dims)

        def finish(acc: Value, _: Index) -> Value:
            if removed_count == int(removed_count):
                divisor_count = sympy.Max(number - int(removed_count), sympy.Integer(0))
                result = divide_by_count(acc, divisor_count)
            else:
                divisor = Cast(index_value(number), acc.dtype) - float(removed_count)
                result = acc / call("maximum", divisor, 0.0)
            return call("sqrt", result) if root else result

        average, spread = moments(b, self, dims, finish, meta.dtype, statistics_type(self.dtype))
        result = reshape(b, spread, meta.size)
        if not with_mean:
            return result
        mean_dtype = b.output_meta(1).dtype
        converted = Tensor(
            average.size, mean_dtype, lambda i: trees.cast(average.at(i), mean_dtype)
        )
        stored = average if average.dtype is mean_dtype else b.realize(converted)
        return result, reshape(b, stored, b.output_meta(1).size)

    return rule


def norm(
    b: Builder,
    self: Tensor,
    p: Any = 2,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    **_: Any,
) -> Tensor:
    """The vector norm of order ``ord``, or ``p`` if it is None."""
    order = float(2 if p is None else p) if ord is None else float(ord)
    meta = b.output_meta()
    dims = normalize_dims(dim, self.rank)
    if order in _KIND_OF_INFINITE_ORDER:
        b.require_nonempty(self.size, dims)
    greatest = zero_if_empty(self, dims) if order == math.inf else None
    return reduce_norm(b, self, dims, order, meta.dtype, meta.size, greatest)


def reduce_norm(
    b: Builder,
    tensor: Tensor,
    dims: tuple[int, ...],
    p: float,
    dtype: DType,
    size: Any = None,
    after: Epilogue | None = None,
) -> Tensor:
    """(sum |x|^p)^(1/p) over ``dims``, the maximum or minimum |x|, or the number of non-zeros;
    ``after`` is applied to it."""
    compute_dtype = dtype.compute_dtype
    if tensor.dtype.is_complex:
        complex_tensor = tensor
        tensor = Tensor(
            complex_tensor.size, compute_dtype, lambda i: call("abs", complex_tensor.at(i))
        )

    def before(x: Value, _: Index) -> Value:
        if p == 0:
            return upcast(call("ne", x, 0), compute_dtype)
        if p == 2:
            return x * x
        return (
            call("abs", x) if p in (1, *_KIND_OF_INFINITE_ORDER) else call("pow", call("abs", x), p)
        )

    def finish(acc: Value, index: Index) -> Value:
        if p == 2:
            acc = call("sqrt", acc)
        elif p not in (0, 1, *_KIND_OF_INFINITE_ORDER):
            acc = call("pow", acc, 1 / p)
        return acc if after is None else after(acc, index)

    kind = _KIND_OF_INFINITE_ORDER.get(p, ReductionKind.SUM)
    return reduce(
        b,
        tensor,
        dims,
        kind,
        dtype=dtype,
        accumulate=compute_dtype,
        size=size,
        before=before,
        after=finish,
    )


def zero_if_empty(tensor: Tensor, dims: Iterable[int]) -> Epilogue:
    """The epilogue for the maximum of magnitudes: 0 for no elements."""
    is_empty = any(tensor.size[d] == 0 for d in dims)

    def after(acc: Value, _: Index) -> Value:
        return call("maximum", acc, 0) if is_empty else acc

    return after


def scan(kind: ReductionKind) -> Callable[..., Tensor]:
    def rule(b: Builder, self: Tensor, dim: int, **_: Any) -> Tensor:
        meta = b.output_meta()
        if self.rank == 0 or self.size[normalize_dim(dim, self.rank)] == 1:
            return elementwise(b, (self,), lambda x: x)
        return b.scan(self.size, normalize_dim(dim, self.rank), kind, self.at, meta.dtype)

    return rule
