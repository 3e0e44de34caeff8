# ruff: noqa: ARG001 - rules have the signature of their op
"""Sorting, and selection from sorted rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.facts import is_less, is_nonnegative
from scheduler.ir.index.functions import FloorDiv, as_expr
from scheduler.ir.index.simplify import product
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value, call, const, index_value, upcast
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.creation import full
from scheduler.lowering.errors import ContradictionError
from scheduler.lowering.pointwise import materialize
from scheduler.lowering.reductions import normalize_dims, reduce, sum_over
from scheduler.lowering.scans import running_reduction
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import normalize_dim, reshape, slice_dim

_ONE = sympy.Integer(1)
_ZERO = sympy.Integer(0)
#: Sorted values, and the index of each.
Sorted = tuple[Tensor, Tensor]


def sort_along(
    b: Builder, self: Tensor, dim: int, descending: bool = False, limit: Expr | None = None
) -> Sorted:
    """Sort the tensor along ``dim``. A tensor without dimensions accepts one too, as in torch."""
    if self.rank == 0:
        normalize_dim(dim, 1)
        return self, full((), 0, DType.I64)
    axis = normalize_dim(dim, self.rank)
    if limit is not None and is_nonnegative(limit - self.size[axis] - 1, b.sizes):
        raise ContradictionError(f"{limit} of {self.size[axis]} elements cannot be limit")
    return b.sort(self, axis, descending=descending, limit=limit)


def sort(b: Builder, self: Tensor, dim: int = -1, descending: bool = False, **_: Any) -> Sorted:
    return sort_along(b, self, dim, bool(descending))


def argsort(b: Builder, self: Tensor, dim: int = -1, descending: bool = False, **_: Any) -> Tensor:
    return sort_along(b, self, dim, bool(descending))[1]


def msort(b: Builder, self: Tensor) -> Tensor:
    return sort_along(b, self, 0)[0]


def topk(
    b: Builder, self: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Sorted:
    """Always sorted, even if ``sorted`` is false."""
    if self.rank == 0 and k == 0:
        size = b.output_meta().size
        return full(size, 0, self.dtype), full(size, 0, DType.I64)
    return sort_along(b, self, dim, bool(largest), as_expr(k))


def kthvalue(b: Builder, self: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Sorted:
    sorted_pair = sort_along(b, self, dim, limit=as_expr(k))
    if self.rank == 0:
        return sorted_pair
    axis, last = normalize_dim(dim, self.rank), as_expr(k) - 1
    b.require_nonempty(self.size, (axis,))
    values, indices = (slice_dim(tensor, axis, last, _ONE) for tensor in sorted_pair)
    size = b.output_meta().size
    return reshape(b, values, size), reshape(b, indices, size)


def median(*, ignores_nan: bool) -> Callable[..., Any]:
    """The lower of the two middle elements, and its index. In a row with NaNs: the first NaN, or
    the median of the other elements."""

    def rule(b: Builder, self: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
        assert b.node is not None
        if len(b.node.outputs) > 1:
            b.require_nonempty(self.size, normalize_dims(dim, self.rank))
            return _median(b, self, int(dim), ignores_nan)
        count = product(self.size)
        if count == 0:
            return full((), float("nan") if self.dtype.is_float else 0, self.dtype)
        return _median(b, reshape(b, self, (count,)), 0, ignores_nan)[0]

    return rule


def _median(b: Builder, self: Tensor, dim: int, ignores_nan: bool) -> Sorted:
    size = b.output_meta().size
    if self.rank == 0:
        return sort_along(b, self, dim)
    axis = normalize_dim(dim, self.rank)
    length = self.size[axis]
    middle = FloorDiv(length - 1, as_expr(2))
    if not self.dtype.is_float:
        sorted_pair = sort_along(b, self, axis, limit=middle + 1)
        values, indices = (
            _guard_empty(b, slice_dim(tensor, axis, middle, _ONE), length) for tensor in sorted_pair
        )
        return reshape(b, values, size), reshape(b, indices, size)
    nans = _nans(b, self, axis)

    def middle_position(index: Index) -> Value:
        count = nans.at(index)
        length_value = index_value(length)
        number_count = length_value - count
        if ignores_nan:
            return call("floordiv", call("maximum", number_count - 1, 0), 2)
        return call("where", count > 0, number_count, index_value(middle))

    positions = Tensor(nans.size, DType.I64, middle_position)
    values, indices = (
        take_position(b, tensor, axis, positions) for tensor in sort_along(b, self, axis)
    )
    return reshape(b, values, size), reshape(b, indices, size)


def _guard_empty(b: Builder, tensor: Tensor, length: Expr) -> Tensor:
    """A selection from rows of ``length`` elements; nothing is read from empty rows."""
    if is_less(_ZERO, length, b.sizes):
        return tensor
    empty_value = const(float("nan") if tensor.dtype.is_float else 0, tensor.dtype)
    has_elements = trees.less_than(_ZERO, length)
    return Tensor(
        tensor.size,
        tensor.dtype,
        lambda i: trees.masked_value(has_elements, tensor.at(i), empty_value),
    )


def _nans(b: Builder, self: Tensor, dim: int) -> Tensor:
    """The number of NaNs in each row; the row's dimension is kept as 1."""

    def is_nan(index: Index) -> Value:
        value = upcast(self.at(index), self.dtype)
        return upcast(call("isnan", value), DType.I64)

    flags = Tensor(self.size, DType.I64, is_nan)
    return sum_over(b, flags, (dim,), dtype=DType.I64)


def take_position(b: Builder, tensor: Tensor, dim: int, positions: Tensor) -> Tensor:
    """The element of each row at its position; the row's dimension is kept as 1."""

    def read(i: Index) -> Value:
        return b.indirect(
            positions,
            i,
            tensor.size[dim],
            lambda x: tensor.at((*i[:dim], x, *i[dim + 1 :])),
            wrap=False,
        )

    result = Tensor(positions.size, tensor.dtype, read)
    return materialize(b, _guard_empty(b, result, tensor.size[dim]))


def mode(b: Builder, self: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """The most frequent value (the smallest if several are), and its last index."""
    if self.rank == 0:
        return sort_along(b, self, dim)
    axis = normalize_dim(dim, self.rank)
    b.require_nonempty(self.size, (axis,))
    values, indices = sort_along(b, self, axis)

    def start(index: Index) -> Value:
        """The position of an element that starts a run of equal elements, else 0."""
        position = index[axis]
        element = upcast(values.at(index), self.dtype)
        previous = values.at((*index[:axis], position - 1, *index[axis + 1 :]))
        has_previous = trees.less_than(_ZERO, position)
        is_different = call("ne", element, upcast(previous, self.dtype))
        is_start = trees.masked_value(has_previous, is_different, const(False, DType.BOOL))
        return call("where", is_start, index_value(position), 0)

    starts = running_reduction(
        b, Tensor(self.size, DType.I64, start), axis, ReductionKind.MAX, DType.I64
    )

    def length(index: Index) -> Value:
        return index_value(index[axis]) - starts.at(index)

    longest = reduce(
        b, Tensor(self.size, DType.I64, length), (axis,), ReductionKind.ARGMAX, dtype=DType.I64
    )
    result = (take_position(b, tensor, axis, longest) for tensor in (values, indices))
    size = b.output_meta().size
    return tuple(reshape(b, tensor, size) for tensor in result)


def quantile(*, ignores_nan: bool) -> Callable[..., Any]:
    def rule(
        b: Builder,
        self: Tensor,
        q: Any,
        dim: Any = None,
        keepdim: bool = False,
        interpolation: str = "linear",
    ) -> Tensor:
        flat = dim is None or self.rank == 0
        tensor = reshape(b, self, (product(self.size),)) if flat else self
        axis = 0 if flat else normalize_dim(dim, self.rank)
        b.require_nonempty(tensor.size, (axis,))
        quantiles = _Quantile(b, tensor, axis, q, ignores_nan, interpolation)
        return materialize(b, quantiles.result())

    return rule


class _Quantile:
    """Quantiles along one dimension of a tensor. The dimension of ``q``, if any, comes first in the
    result."""

    def __init__(
        self, b: Builder, tensor: Tensor, dim: int, q: Any, ignores_nan: bool, interpolation: str
    ) -> None:
        self._b, self._dim, self._q = b, dim, q
        self._length, self._dtype = tensor.size[dim], tensor.dtype
        self._ignores_nan, self._interpolation = ignores_nan, interpolation
        self._nans = _nans(b, tensor, dim)
        self._rows = b.sort(tensor, dim)[0]

    def result(self) -> Tensor:
        q_size = self._q.size if isinstance(self._q, Tensor) else ()
        row_size = tuple(e for d, e in enumerate(self._rows.size) if d != self._dim)
        quantiles = Tensor((*q_size, *row_size), self._dtype, self._element_at)
        return reshape(self._b, self._b.realize(quantiles), self._b.output_meta().size)

    def _element_at(self, index: Index) -> Value:
        q_rank = len(self._q.size) if isinstance(self._q, Tensor) else 0
        row = index[q_rank:]
        position = self._position(index[:q_rank], row)
        roundings = {"lower": "floor", "higher": "ceil", "nearest": "round"}
        if self._interpolation in roundings:
            return self._element(call(roundings[self._interpolation], position), row)
        low = call("floor", position)
        below, above = self._element(low, row), self._element(call("ceil", position), row)
        unit, half = const(1.0, self._dtype), const(0.5, self._dtype)
        weight = half if self._interpolation == "midpoint" else position - low
        step = above - below
        from_below = below + weight * step
        from_above = above - step * (unit - weight)
        return call("where", weight < half, from_below, from_above)

    def _position(self, q_index: Index, row: Index) -> Value:
        """The position between the elements of the row, from 0 to the last index."""
        dtype, zero = self._dtype, const(0.0, self._dtype)
        if isinstance(self._q, Tensor):
            q = upcast(self._q.at(q_index), dtype)
        else:
            q = const(float(self._q), dtype)
        nans = self._nans.at((*row[: self._dim], sympy.Integer(0), *row[self._dim :]))
        last = trees.cast(index_value(self._length - 1), dtype.compute_dtype)
        if self._ignores_nan:
            last_number_index = index_value(self._length - 1) - nans
            last_number = trees.cast(call("maximum", last_number_index, 0), dtype.compute_dtype)
            position = q * last_number
        else:
            has_nan = nans > 0
            position = call("where", has_nan, last, q * last)
        return call("minimum", call("maximum", position, zero), last)

    def _element(self, position: Value, row: Index) -> Value:
        position_tensor = Tensor((), DType.I64, lambda _: trees.cast(position, DType.I64))
        read = self._b.indirect(
            position_tensor,
            (),
            self._length,
            lambda x: self._rows.at((*row[: self._dim], x, *row[self._dim :])),
            wrap=False,
        )
        return upcast(read, self._dtype)
