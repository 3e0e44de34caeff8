# ruff: noqa: ARG001 - rules have the signature of their op
"""Ops that write at indices: scatter, index_put, index_add and similar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.simplify import product
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value, call, const, index_value, upcast
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.layout import broadcast_size
from scheduler.lowering.pointwise import element, materialize
from scheduler.lowering.reductions import reduce
from scheduler.lowering.scatter import (
    Sources,
    combine,
    count_sources,
    last_source,
    neutral_element,
    overwrite,
    unflatten_index,
)
from scheduler.lowering.tensor import Index, Reader, Tensor
from scheduler.lowering.views import broadcast, normalize_dim, reshape

_ZERO = sympy.Integer(0)
_SUM, _PROD = ReductionKind.SUM, ReductionKind.PROD
_KIND_OF_NAME = {
    "sum": _SUM,
    "add": _SUM,
    "mean": _SUM,
    "prod": _PROD,
    "multiply": _PROD,
    "amax": ReductionKind.MAX,
    "amin": ReductionKind.MIN,
}


def _kind(reduce: str) -> ReductionKind:
    if reduce not in _KIND_OF_NAME:
        raise Unsupported(f"a reduction by {reduce!r} is not supported")
    return _KIND_OF_NAME[reduce]


def with_dimension(b: Builder, tensor: Tensor) -> Tensor:
    """The tensor with at least one dimension: a scalar tensor becomes a vector of one element."""
    return tensor if tensor.rank else reshape(b, tensor, (sympy.Integer(1),))


def _shaped(b: Builder, result: Tensor, like: Tensor) -> Tensor:
    return materialize(b, result if result.size == like.size else reshape(b, result, like.size))


# -- along a dimension, one index per element ------------------------------------------------------


def _dim_sources(b: Builder, self: Tensor, dim: int, index: Tensor, value: Reader) -> Sources:
    """Sources that are the elements of ``index``; each states its position along ``dim``."""
    axis = normalize_dim(dim, self.rank)
    return Sources(index.size, lambda i: (*i[:axis], index.at(i), *i[axis + 1 :]), value)


def scatter(
    b: Builder,
    self: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor | None = None,
    value: Any = None,
    reduce: str | None = None,
) -> Tensor:
    """self[i with index[i] along dim] = src[i], or combined with it."""
    target, positions = with_dimension(b, self), with_dimension(b, index)
    source = value if src is None else with_dimension(b, src)

    def read(i: Index) -> Value:
        return element(source, i, self.dtype)

    if reduce is not None:
        result = combine(b, target, _kind(reduce), _dim_sources(b, target, dim, positions, read))
        return _shaped(b, result, self)
    axis = normalize_dim(dim, target.rank)

    # Sources that reach an element differ from it only in their position along the dimension, so
    # this position identifies the last one.
    winner = last_source(
        b,
        target.size,
        _dim_sources(b, target, dim, positions, positions.at),
        number=lambda i: i[axis],
        count=positions.size[axis],
    )

    def select(i: Index) -> Value:
        source_number = winner.at(i)
        is_written = source_number >= 0
        source_value = b.indirect(
            winner,
            i,
            positions.size[axis],
            lambda n: read((*i[:axis], n, *i[axis + 1 :])),
            wrap=False,
        )
        return trees.masked_value(is_written, upcast(source_value, self.dtype), target.at(i))

    return _shaped(b, Tensor(target.size, self.dtype, select), self)


def scatter_add(b: Builder, self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    return scatter(b, self, dim, index, src, reduce="add")


def scatter_reduce(
    b: Builder,
    self: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    include_self: bool = True,
) -> Tensor:
    target, positions, source = (with_dimension(b, t) for t in (self, index, src))
    sources = _dim_sources(b, target, dim, positions, source.at)
    result = _reduce_into(
        b, target, reduce, include_self, sources, target.size, lambda i: i, sources
    )
    return _shaped(b, result, self)


def _reduce_into(
    b: Builder,
    self: Tensor,
    reduce: str,
    include_self: bool,
    sources: Sources,
    counts: tuple[Expr, ...],
    key: Callable[[Index], Index],
    counted_sources: Sources,
) -> Tensor:
    """``self`` with the sources reduced into it, or replacing it where any source goes.

    ``counted_sources`` are the sources to count in a tensor of size ``counts``; ``key`` maps an
    element to its count.
    """
    kind = _kind(reduce)
    initial = None if include_self else (lambda _: neutral_element(kind, self.dtype))
    result = combine(b, self, kind, sources, initial)
    if include_self and reduce != "mean":
        return result
    source_counts = count_sources(b, counts, counted_sources)

    def read(i: Index) -> Value:
        count = source_counts.at(key(i))
        value = result.at(i)
        if reduce == "mean":
            total = count + int(include_self)
            divisor = call("maximum", total, 1)
            value = _divided(value, divisor)
        if include_self:
            return value
        is_written = count > 0
        return call("where", is_written, value, upcast(self.at(i), self.dtype))

    return Tensor(self.size, self.dtype, read)


def _divided(value: Value, count: Value) -> Value:
    """Divide; integers round towards minus infinity, as in torch's means."""
    op = "truediv" if value.dtype.is_float else "floordiv"
    return call(op, value, upcast(count, value.dtype))


# -- along a dimension, whole slices ---------------------------------------------------------------


def _slice_operands(
    b: Builder, self: Tensor, dim: int, index: Tensor, source: Tensor
) -> tuple[Tensor, int, Tensor, Tensor]:
    """Tensor, dimension, vector of positions along it and source, as index_add and similar ops
    define them; scalar tensors are treated as vectors."""
    target, positions = with_dimension(b, self), reshape(b, index, (product(index.size),))
    axis = normalize_dim(dim, target.rank)
    size = (*target.size[:axis], positions.size[0], *target.size[axis + 1 :])
    return target, axis, positions, reshape(b, source, size)


def _slice_sources(positions: Tensor, axis: int, source: Tensor, value: Reader) -> Sources:
    def target_index(i: Index) -> Sequence[Expr | Value]:
        return (*i[:axis], positions.at((i[axis],)), *i[axis + 1 :])

    return Sources(source.size, target_index, value)


def index_add(
    b: Builder, self: Tensor, dim: int, index: Tensor, source: Tensor, alpha: Any = 1
) -> Tensor:
    """self[.., index[k], ..] += alpha * source[.., k, ..]"""
    target, axis, positions, slices = _slice_operands(b, self, dim, index, source)

    def value(i: Index) -> Value:
        source_value = upcast(slices.at(i), self.dtype)
        if self.dtype is DType.BOOL:
            return trees.all_of(source_value, const(bool(alpha), DType.BOOL))
        return source_value if alpha == 1 else source_value * element(alpha, i, self.dtype)

    result = combine(b, target, _SUM, _slice_sources(positions, axis, slices, value))
    return _shaped(b, result, self)


def index_reduce(
    b: Builder,
    self: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    include_self: bool = True,
) -> Tensor:
    target, axis, positions, slices = _slice_operands(b, self, dim, index, source)
    sources = _slice_sources(positions, axis, slices, slices.at)
    counted_sources = Sources(positions.size, lambda i: (positions.at(i),), slices.at)
    counts = (target.size[axis],)
    result = _reduce_into(
        b, target, reduce, include_self, sources, counts, lambda i: (i[axis],), counted_sources
    )
    return _shaped(b, result, self)


def index_copy(b: Builder, self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """self[.., index[k], ..] = source[.., k, ..]"""
    target, axis, positions, slices = _slice_operands(b, self, dim, index, source)
    result = overwrite(
        b,
        target,
        (axis,),
        positions.size,
        lambda n: (positions.at(n),),
        lambda n, i: slices.at((*i[:axis], n[0], *i[axis + 1 :])),
    )
    return _shaped(b, result, self)


def index_fill(b: Builder, self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """self[.., index[k], ..] = value"""
    target, positions = with_dimension(b, self), reshape(b, index, (product(index.size),))
    axis = normalize_dim(dim, target.rank)
    result = overwrite(
        b,
        target,
        (axis,),
        positions.size,
        lambda n: (positions.at(n),),
        lambda _n, _i: element(value, (), self.dtype),
    )
    return _shaped(b, result, self)


# -- several dimensions at once --------------------------------------------------------------------


def index_put(
    b: Builder,
    self: Tensor,
    indices: tuple[Tensor | None, ...],
    values: Tensor,
    accumulate: bool = False,
    unsafe: bool = False,
) -> Tensor:
    """self[indices] = values by NumPy's rules, or += values."""
    indexed_dims = [d for d, t in enumerate(indices) if t is not None]
    tensors = [t for t in indices if t is not None]
    if not tensors:
        raise Unsupported("index_put without indices is not supported")
    if any(t.dtype in (DType.BOOL, DType.U8) for t in tensors):
        if len(tensors) > 1:
            raise Unsupported(
                "a mask among other indices is not supported: the number of elements depends "
                "on data"
            )
        return _masked_put(b, self, indexed_dims[0], tensors[0], values, accumulate)
    size = broadcast_size([t.size for t in tensors])
    broadcast_indices = [broadcast(t, size) for t in tensors]
    are_adjacent = indexed_dims == list(range(indexed_dims[0], indexed_dims[0] + len(indexed_dims)))
    first = indexed_dims[0] if are_adjacent else 0
    other_dims = [d for d in range(self.rank) if d not in indexed_dims]
    other_size = tuple(self.size[d] for d in other_dims)
    shape = (*other_size[:first], *size, *other_size[first:])
    source = broadcast(values, shape)

    def source_index(n: Index, i: Index) -> Index:
        other_indices = tuple(i[d] for d in other_dims)
        return (*other_indices[:first], *n, *other_indices[first:])

    if accumulate:

        def target_index(i: Index) -> Sequence[Expr | Value]:
            n = i[first : first + len(size)]
            other_indices = iter((*i[:first], *i[first + len(size) :]))
            return tuple(
                broadcast_indices[indexed_dims.index(d)].at(n)
                if d in indexed_dims
                else next(other_indices)
                for d in range(self.rank)
            )

        sources = Sources(shape, target_index, lambda i: upcast(source.at(i), self.dtype))
        return materialize(b, combine(b, self, _SUM, sources))
    result = overwrite(
        b,
        self,
        indexed_dims,
        size,
        lambda n: tuple(t.at(n) for t in broadcast_indices),
        lambda n, i: source.at(source_index(n, i)),
    )
    return materialize(b, result)


def _masked_put(
    b: Builder, self: Tensor, first: int, mask: Tensor, values: Tensor, accumulate: bool
) -> Tensor:
    """Write ``values`` where a mask over neighbouring dimensions holds. The selected elements, in
    row-major order, form one dimension of the values, between those before and after the mask's."""
    rank, tail = mask.rank, self.rank - first - mask.rank
    values_dim = values.rank - 1 - tail
    number = positions(b, mask) if values_dim >= 0 and values.size[values_dim] != 1 else None

    def read(i: Index) -> Value:
        mask_index = i[first : first + rank]

        def at_number(n: Expr) -> Value:
            source_index = (*i[:first], n, *i[first + rank :])
            old_value = source_index[len(source_index) - values.rank :]
            broadcast_index = (
                _ZERO if e == 1 else x for x, e in zip(old_value, values.size, strict=True)
            )
            return upcast(values.at(tuple(broadcast_index)), self.dtype)

        new_value = (
            at_number(_ZERO)
            if number is None
            else b.indirect(number, mask_index, values.size[values_dim], at_number, wrap=False)
        )
        old_value = upcast(self.at(i), self.dtype)
        if accumulate:
            add = "logical_or" if self.dtype is DType.BOOL else "add"
            new_value = call(add, old_value, new_value)
        return trees.masked_value(upcast(mask.at(mask_index), DType.BOOL), new_value, old_value)

    return materialize(b, Tensor(self.size, self.dtype, read))


def positions(b: Builder, mask: Tensor) -> Tensor:
    """For each true element of a mask, the number of true elements before it in row-major order.
    False elements before the first true one give -1."""
    flat = reshape(b, mask, (product(mask.size),))

    def read(i: Index) -> Value:
        return upcast(upcast(flat.at(i), DType.BOOL), DType.I64)

    running = b.scan(flat.size, 0, _SUM, read, DType.I64)
    positions_before = Tensor(flat.size, DType.I64, lambda i: running.at(i) - 1)
    return reshape(b, positions_before, mask.size)


def nonzero_static(b: Builder, self: Tensor, fill_value: int = -1, **_: Any) -> Tensor:
    """One row of indices for each of the first nonzero elements, up to the number of rows of the
    result; missing rows are ``fill_value``."""
    meta = b.output_meta()
    count, fill = product(self.size), const(fill_value, DType.I64)
    if 0 in meta.size or count == 0:
        return materialize(b, Tensor(meta.size, DType.I64, lambda _: fill))
    flat = reshape(b, self, (count,))
    number = positions(b, flat)

    def has_row(i: Index) -> Value:
        has_result_row = number.at(i) < index_value(meta.size[0])
        return trees.all_of(upcast(flat.at(i), DType.BOOL), has_result_row)

    rows = meta.size[:1]
    sources = Sources((count,), lambda i: (number.at(i),), lambda _: fill, has_row)
    last_sources = last_source(b, rows, sources)

    def coordinate(dim: int) -> Callable[[Expr], Value]:
        return lambda number: index_value(unflatten_index(number, self.size)[dim])

    def read(i: Index) -> Value:
        is_found = last_sources.at(i[:1]) >= 0
        value: Value = fill
        for d in range(self.rank):
            coordinate_value = b.indirect(last_sources, i[:1], count, coordinate(d), wrap=False)
            is_dimension = trees.equal(i[1], d)
            value = trees.masked_value(
                trees.all_of(is_found, is_dimension), upcast(coordinate_value, DType.I64), value
            )
        return value

    return materialize(b, Tensor(meta.size, DType.I64, read))


def masked_scatter(b: Builder, self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Replace elements where the mask holds by consecutive elements of ``source``."""
    size = b.output_meta().size
    target, is_selected = broadcast(self, size), broadcast(mask, size)
    flat_source = reshape(b, source, (product(source.size),))
    source_number = positions(b, is_selected)

    def read(i: Index) -> Value:
        source_value = b.indirect(
            source_number, i, flat_source.size[0], lambda n: flat_source.at((n,)), wrap=False
        )
        return trees.masked_value(is_selected.at(i), upcast(source_value, self.dtype), target.at(i))

    return materialize(b, Tensor(size, self.dtype, read))


# -- flattened tensors -----------------------------------------------------------------------------


def masked_put(
    b: Builder, self: Tensor, mask: Tensor, indices: tuple[Tensor | None, ...], values: Tensor
) -> Tensor:
    """``index_put`` with accumulation, only where the mask holds."""
    zero = const(0, self.dtype)

    def read(i: Index) -> Value:
        is_selected = upcast(broadcast_mask.at(i), DType.BOOL)
        return trees.masked_value(is_selected, upcast(source.at(i), self.dtype), zero)

    size = broadcast_size([mask.size, values.size])
    broadcast_mask, source = broadcast(mask, size), broadcast(values, size)
    return index_put(b, self, indices, Tensor(size, self.dtype, read), accumulate=True)


def put(
    b: Builder, self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False
) -> Tensor:
    """self.flatten()[index] = source"""
    flat = reshape(b, self, (product(self.size),))
    count = product(index.size)
    flat_positions, flat_source = reshape(b, index, (count,)), reshape(b, source, (count,))
    result = index_put(b, flat, (flat_positions,), flat_source, accumulate)
    return materialize(b, reshape(b, result, self.size))


# -- embedding gradients and renormalisation -------------------------------------------------------


def embedding_renorm(
    b: Builder, self: Tensor, indices: Tensor, max_norm: float, norm_type: float
) -> Tensor:
    """Scale the rows that are looked up and longer than ``max_norm`` down to that norm."""
    norms = _row_norms(b, self, float(norm_type))
    lookups = Sources(indices.size, lambda i: (indices.at(i),), indices.at)
    lookup_counts = count_sources(b, self.size[:1], lookups)
    compute_dtype = self.dtype.compute_dtype

    def read(i: Index) -> Value:
        norm, value = norms.at((i[0], _ZERO)), upcast(self.at(i), compute_dtype)
        is_long = (lookup_counts.at(i[:1]) > 0) & (norm > max_norm)
        return call("where", is_long, value * (max_norm / (norm + 1e-07)), value)

    return materialize(b, Tensor(self.size, self.dtype, read))


def _row_norms(b: Builder, rows: Tensor, order: float) -> Tensor:
    """The norm of each row, with the dimension kept."""
    compute_dtype = rows.dtype.compute_dtype
    has_no_powers = order in (1.0, float("inf"))

    def before(x: Value, _: Index) -> Value:
        magnitude = call("abs", x)
        return magnitude if has_no_powers else call("pow", magnitude, order)

    def after(total: Value, _: Index) -> Value:
        return total if has_no_powers else call("pow", total, 1 / order)

    kind = ReductionKind.MAX if order == float("inf") else _SUM
    return reduce(b, rows, (1,), kind, dtype=compute_dtype, before=before, after=after)


def embedding_dense_backward(
    b: Builder,
    grad_output: Tensor,
    indices: Tensor,
    num_weights: Any,
    padding_idx: Any,
    scale_grad_by_freq: bool,
) -> Tensor:
    """out[indices[i], d] += grad_output[i, d], except for the padding row."""
    rows, width = sympy.Integer(0) + num_weights, grad_output.size[-1]

    def condition(i: Index) -> Value:
        row = upcast(indices.at(i[: indices.rank]), DType.I64)
        return call("ne", row, int(padding_idx))

    is_used = condition if padding_idx >= 0 else None
    counts = None
    if scale_grad_by_freq:
        lookups = Sources(indices.size, lambda i: (indices.at(i),), indices.at, is_used)
        counts = count_sources(b, (rows,), lookups)

    def value(i: Index) -> Value:
        gradient = upcast(grad_output.at(i), grad_output.dtype)
        if counts is None:
            return gradient
        count = b.indirect(indices, i[:-1], rows, lambda row: counts.at((row,)), wrap=False)
        return _divided(gradient, count)

    zero = Tensor((rows, width), grad_output.dtype, lambda _: const(0, grad_output.dtype))
    sources = Sources(grad_output.size, lambda i: (indices.at(i[:-1]), i[-1]), value, is_used)
    return materialize(b, combine(b, zero, _SUM, sources))
