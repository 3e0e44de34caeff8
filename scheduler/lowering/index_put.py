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
_KINDS = {
    "sum": _SUM,
    "add": _SUM,
    "mean": _SUM,
    "prod": _PROD,
    "multiply": _PROD,
    "amax": ReductionKind.MAX,
    "amin": ReductionKind.MIN,
}


def _kind(reduce: str) -> ReductionKind:
    if reduce not in _KINDS:
        raise Unsupported(f"a reduction by {reduce!r} is not supported")
    return _KINDS[reduce]


def with_dimension(b: Builder, tensor: Tensor) -> Tensor:
    """The tensor with at least one dimension: a scalar tensor becomes a vector of one element."""
    return tensor if tensor.rank else reshape(b, tensor, (sympy.Integer(1),))


def _shaped(b: Builder, made: Tensor, like: Tensor) -> Tensor:
    return materialize(b, made if made.size == like.size else reshape(b, made, like.size))


# -- along a dimension, one index per element ------------------------------------------------------


def _dim_sources(b: Builder, self: Tensor, dim: int, index: Tensor, value: Reader) -> Sources:
    """Sources that are the elements of ``index``; each states its position along ``dim``."""
    at = normalize_dim(dim, self.rank)
    return Sources(index.size, lambda i: (*i[:at], index.at(i), *i[at + 1 :]), value)


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
    whole, places = with_dimension(b, self), with_dimension(b, index)
    source = value if src is None else with_dimension(b, src)

    def read(i: Index) -> Value:
        return element(source, i, self.dtype)

    if reduce is not None:
        result = combine(b, whole, _kind(reduce), _dim_sources(b, whole, dim, places, read))
        return _shaped(b, result, self)
    at = normalize_dim(dim, whole.rank)

    # Sources that reach an element differ from it only in their position along the dimension, so
    # this position identifies the last one.
    winner = last_source(
        b,
        whole.size,
        _dim_sources(b, whole, dim, places, places.at),
        number=lambda i: i[at],
        count=places.size[at],
    )

    def chosen(i: Index) -> Value:
        number = winner.at(i)
        reached = number >= 0
        brought = b.indirect(
            winner, i, places.size[at], lambda n: read((*i[:at], n, *i[at + 1 :])), wrap=False
        )
        return trees.masked_value(reached, upcast(brought, self.dtype), whole.at(i))

    return _shaped(b, Tensor(whole.size, self.dtype, chosen), self)


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
    whole, places, source = (with_dimension(b, t) for t in (self, index, src))
    sources = _dim_sources(b, whole, dim, places, source.at)
    result = _reduce_into(b, whole, reduce, include_self, sources, whole.size, lambda i: i, sources)
    return _shaped(b, result, self)


def _reduce_into(
    b: Builder,
    self: Tensor,
    reduce: str,
    include_self: bool,
    sources: Sources,
    counts: tuple[Expr, ...],
    key: Callable[[Index], Index],
    counting: Sources,
) -> Tensor:
    """``self`` with the sources reduced into it, or replacing it where any source goes.

    ``counting`` counts the sources in a tensor of size ``counts``; ``key`` maps an element to its
    count.
    """
    kind = _kind(reduce)
    begin = None if include_self else (lambda _: neutral_element(kind, self.dtype))
    result = combine(b, self, kind, sources, begin)
    if include_self and reduce != "mean":
        return result
    reached = count_sources(b, counts, counting)

    def read(i: Index) -> Value:
        count = reached.at(key(i))
        value = result.at(i)
        if reduce == "mean":
            more = count + int(include_self)
            least = call("maximum", more, 1)
            value = _divided(value, least)
        if include_self:
            return value
        some = count > 0
        return call("where", some, value, upcast(self.at(i), self.dtype))

    return Tensor(self.size, self.dtype, read)


def _divided(value: Value, count: Value) -> Value:
    """Divide; integers round towards minus infinity, as in torch's means."""
    by = "truediv" if value.dtype.is_float else "floordiv"
    return call(by, value, upcast(count, value.dtype))


# -- along a dimension, whole slices ---------------------------------------------------------------


def _slice_operands(
    b: Builder, self: Tensor, dim: int, index: Tensor, source: Tensor
) -> tuple[Tensor, int, Tensor, Tensor]:
    """Tensor, dimension, vector of positions along it and source, as index_add and similar ops
    define them; scalar tensors are treated as vectors."""
    whole, places = with_dimension(b, self), reshape(b, index, (product(index.size),))
    at = normalize_dim(dim, whole.rank)
    size = (*whole.size[:at], places.size[0], *whole.size[at + 1 :])
    return whole, at, places, reshape(b, source, size)


def _slice_sources(places: Tensor, at: int, source: Tensor, value: Reader) -> Sources:
    def place(i: Index) -> Sequence[Expr | Value]:
        return (*i[:at], places.at((i[at],)), *i[at + 1 :])

    return Sources(source.size, place, value)


def index_add(
    b: Builder, self: Tensor, dim: int, index: Tensor, source: Tensor, alpha: Any = 1
) -> Tensor:
    """self[.., index[k], ..] += alpha * source[.., k, ..]"""
    whole, at, places, given = _slice_operands(b, self, dim, index, source)

    def value(i: Index) -> Value:
        read = upcast(given.at(i), self.dtype)
        if self.dtype is DType.BOOL:
            return trees.all_of(read, const(bool(alpha), DType.BOOL))
        return read if alpha == 1 else read * element(alpha, i, self.dtype)

    result = combine(b, whole, _SUM, _slice_sources(places, at, given, value))
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
    whole, at, places, given = _slice_operands(b, self, dim, index, source)
    sources = _slice_sources(places, at, given, given.at)
    counting = Sources(places.size, lambda i: (places.at(i),), given.at)
    counts = (whole.size[at],)
    result = _reduce_into(
        b, whole, reduce, include_self, sources, counts, lambda i: (i[at],), counting
    )
    return _shaped(b, result, self)


def index_copy(b: Builder, self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """self[.., index[k], ..] = source[.., k, ..]"""
    whole, at, places, given = _slice_operands(b, self, dim, index, source)
    result = overwrite(
        b,
        whole,
        (at,),
        places.size,
        lambda n: (places.at(n),),
        lambda n, i: given.at((*i[:at], n[0], *i[at + 1 :])),
    )
    return _shaped(b, result, self)


def index_fill(b: Builder, self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """self[.., index[k], ..] = value"""
    whole, places = with_dimension(b, self), reshape(b, index, (product(index.size),))
    at = normalize_dim(dim, whole.rank)
    result = overwrite(
        b,
        whole,
        (at,),
        places.size,
        lambda n: (places.at(n),),
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
    given = [d for d, t in enumerate(indices) if t is not None]
    tensors = [t for t in indices if t is not None]
    if not tensors:
        raise Unsupported("index_put without indices is not supported")
    if any(t.dtype in (DType.BOOL, DType.U8) for t in tensors):
        if len(tensors) > 1:
            raise Unsupported(
                "a mask beside other indices is not supported: the number of elements depends "
                "on data"
            )
        return _masked_put(b, self, given[0], tensors[0], values, accumulate)
    size = broadcast_size([t.size for t in tensors])
    wide = [broadcast(t, size) for t in tensors]
    neighbours = given == list(range(given[0], given[0] + len(given)))
    first = given[0] if neighbours else 0
    rest = [d for d in range(self.rank) if d not in given]
    others = tuple(self.size[d] for d in rest)
    shape = (*others[:first], *size, *others[first:])
    source = broadcast(values, shape)

    def source_index(n: Index, i: Index) -> Index:
        kept = tuple(i[d] for d in rest)
        return (*kept[:first], *n, *kept[first:])

    if accumulate:

        def place(i: Index) -> Sequence[Expr | Value]:
            n = i[first : first + len(size)]
            kept = iter((*i[:first], *i[first + len(size) :]))
            return tuple(
                wide[given.index(d)].at(n) if d in given else next(kept) for d in range(self.rank)
            )

        sources = Sources(shape, place, lambda i: upcast(source.at(i), self.dtype))
        return materialize(b, combine(b, self, _SUM, sources))
    result = overwrite(
        b,
        self,
        given,
        size,
        lambda n: tuple(t.at(n) for t in wide),
        lambda n, i: source.at(source_index(n, i)),
    )
    return materialize(b, result)


def _masked_put(
    b: Builder, self: Tensor, first: int, mask: Tensor, values: Tensor, accumulate: bool
) -> Tensor:
    """Write ``values`` where a mask over neighbouring dimensions holds. The selected elements, in
    row-major order, form one dimension of the values, between those before and after the mask's."""
    rank, tail = mask.rank, self.rank - first - mask.rank
    along = values.rank - 1 - tail
    number = positions(b, mask) if along >= 0 and values.size[along] != 1 else None

    def read(i: Index) -> Value:
        here = i[first : first + rank]

        def at_number(n: Expr) -> Value:
            chosen = (*i[:first], n, *i[first + rank :])
            own = chosen[len(chosen) - values.rank :]
            kept = (_ZERO if e == 1 else x for x, e in zip(own, values.size, strict=True))
            return upcast(values.at(tuple(kept)), self.dtype)

        brought = (
            at_number(_ZERO)
            if number is None
            else b.indirect(number, here, values.size[along], at_number, wrap=False)
        )
        own = upcast(self.at(i), self.dtype)
        if accumulate:
            add = "logical_or" if self.dtype is DType.BOOL else "add"
            brought = call(add, own, brought)
        return trees.masked_value(upcast(mask.at(here), DType.BOOL), brought, own)

    return materialize(b, Tensor(self.size, self.dtype, read))


def positions(b: Builder, mask: Tensor) -> Tensor:
    """For each true element of a mask, the number of true elements before it in row-major order.
    False elements before the first true one give -1."""
    line = reshape(b, mask, (product(mask.size),))

    def read(i: Index) -> Value:
        return upcast(upcast(line.at(i), DType.BOOL), DType.I64)

    running = b.scan(line.size, 0, _SUM, read, DType.I64)
    before = Tensor(line.size, DType.I64, lambda i: running.at(i) - 1)
    return reshape(b, before, mask.size)


def nonzero_static(b: Builder, self: Tensor, fill_value: int = -1, **_: Any) -> Tensor:
    """One row of indices for each of the first nonzero elements, up to the number of rows of the
    result; missing rows are ``fill_value``."""
    meta = b.meta()
    count, fill = product(self.size), const(fill_value, DType.I64)
    if 0 in meta.size or count == 0:
        return materialize(b, Tensor(meta.size, DType.I64, lambda _: fill))
    line = reshape(b, self, (count,))
    number = positions(b, line)

    def has_row(i: Index) -> Value:
        below = number.at(i) < index_value(meta.size[0])
        return trees.all_of(upcast(line.at(i), DType.BOOL), below)

    rows = meta.size[:1]
    sources = Sources((count,), lambda i: (number.at(i),), lambda _: fill, has_row)
    found = last_source(b, rows, sources)

    def coordinate(dim: int) -> Callable[[Expr], Value]:
        return lambda number: index_value(unflatten_index(number, self.size)[dim])

    def read(i: Index) -> Value:
        reached = found.at(i[:1]) >= 0
        value: Value = fill
        for d in range(self.rank):
            place = b.indirect(found, i[:1], count, coordinate(d), wrap=False)
            own = trees.equal(i[1], d)
            value = trees.masked_value(trees.all_of(reached, own), upcast(place, DType.I64), value)
        return value

    return materialize(b, Tensor(meta.size, DType.I64, read))


def masked_scatter(b: Builder, self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Replace elements where the mask holds by consecutive elements of ``source``."""
    size = b.meta().size
    whole, chosen = broadcast(self, size), broadcast(mask, size)
    line = reshape(b, source, (product(source.size),))
    number = positions(b, chosen)

    def read(i: Index) -> Value:
        brought = b.indirect(number, i, line.size[0], lambda n: line.at((n,)), wrap=False)
        return trees.masked_value(chosen.at(i), upcast(brought, self.dtype), whole.at(i))

    return materialize(b, Tensor(size, self.dtype, read))


# -- flattened tensors -----------------------------------------------------------------------------


def masked_put(
    b: Builder, self: Tensor, mask: Tensor, indices: tuple[Tensor | None, ...], values: Tensor
) -> Tensor:
    """``index_put`` with accumulation, only where the mask holds."""
    zero = const(0, self.dtype)

    def read(i: Index) -> Value:
        chosen = upcast(wide.at(i), DType.BOOL)
        return trees.masked_value(chosen, upcast(source.at(i), self.dtype), zero)

    size = broadcast_size([mask.size, values.size])
    wide, source = broadcast(mask, size), broadcast(values, size)
    return index_put(b, self, indices, Tensor(size, self.dtype, read), accumulate=True)


def put(
    b: Builder, self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False
) -> Tensor:
    """self.flatten()[index] = source"""
    line = reshape(b, self, (product(self.size),))
    count = product(index.size)
    places, given = reshape(b, index, (count,)), reshape(b, source, (count,))
    result = index_put(b, line, (places,), given, accumulate)
    return materialize(b, reshape(b, result, self.size))


# -- embedding gradients and renormalisation -------------------------------------------------------


def embedding_renorm(
    b: Builder, self: Tensor, indices: Tensor, max_norm: float, norm_type: float
) -> Tensor:
    """Scale the rows that are looked up and longer than ``max_norm`` down to that norm."""
    lengths = _row_norms(b, self, float(norm_type))
    looked_up = Sources(indices.size, lambda i: (indices.at(i),), indices.at)
    reached = count_sources(b, self.size[:1], looked_up)
    compute_dtype = self.dtype.compute_dtype

    def read(i: Index) -> Value:
        length, value = lengths.at((i[0], _ZERO)), upcast(self.at(i), compute_dtype)
        is_long = (reached.at(i[:1]) > 0) & (length > max_norm)
        return call("where", is_long, value * (max_norm / (length + 1e-07)), value)

    return materialize(b, Tensor(self.size, self.dtype, read))


def _row_norms(b: Builder, rows: Tensor, order: float) -> Tensor:
    """The norm of each row, with the dimension kept."""
    compute_dtype = rows.dtype.compute_dtype
    whole = order in (1.0, float("inf"))

    def before(x: Value, _: Index) -> Value:
        size = call("abs", x)
        return size if whole else call("pow", size, order)

    def after(total: Value, _: Index) -> Value:
        return total if whole else call("pow", total, 1 / order)

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

    used = condition if padding_idx >= 0 else None
    counts = None
    if scale_grad_by_freq:
        places = Sources(indices.size, lambda i: (indices.at(i),), indices.at, used)
        counts = count_sources(b, (rows,), places)

    def value(i: Index) -> Value:
        own = upcast(grad_output.at(i), grad_output.dtype)
        if counts is None:
            return own
        count = b.indirect(indices, i[:-1], rows, lambda row: counts.at((row,)), wrap=False)
        return _divided(own, count)

    zero = Tensor((rows, width), grad_output.dtype, lambda _: const(0, grad_output.dtype))
    sources = Sources(grad_output.size, lambda i: (indices.at(i[:-1]), i[-1]), value, used)
    return materialize(b, combine(b, zero, _SUM, sources))
