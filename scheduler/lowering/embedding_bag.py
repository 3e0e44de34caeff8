# ruff: noqa: ARG001 - rules have the signature of their op
"""Sums, means and maxima over bags of a table's rows: embedding_bag."""

from __future__ import annotations

from typing import Any

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr, TensorMeta
from scheduler.ir.index.simplify import product
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value, call, const, index_value, upcast
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.creation import full
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.pointwise import element, materialize
from scheduler.lowering.scatter import Sources, combine, count_sources, neutral_element
from scheduler.lowering.tensor import Index, Reader, Tensor
from scheduler.lowering.views import reshape

_SUM, _MEAN, _MAX = 0, 1, 2


def embedding_bag(
    b: Builder,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    mode: int = _SUM,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: Any = -1,
) -> tuple[Tensor, ...]:
    """out[bag] = sum, mean or maximum of weight[indices[k]] over the k of the bag. Also returns the
    values that torch keeps for the gradient: the bag of each entry, the size of each bag, and the
    rows of the maxima."""
    rows, width = weight.size
    padding = -1 if padding_idx is None else padding_idx
    entries = reshape(b, indices, (product(indices.size),))
    bag = _bags(b, entries.size[0], offsets)
    bags = b.meta(0).size[0]

    def used(i: Index) -> Value:
        held = upcast(entries.at(i[:1]), DType.I64)
        inside = bag.at(i[:1]) >= 0
        real = call("ne", held, padding)
        return trees.all_of(inside, real) if padding >= 0 else inside

    def brought(i: Index) -> Value:
        value = b.indirect(entries, i[:1], rows, lambda row: weight.at((row, i[1])), wrap=False)
        value = upcast(value, weight.dtype)
        if per_sample_weights is None:
            return value
        return value * element(per_sample_weights, i[:1], weight.dtype)

    kind = ReductionKind.MAX if mode == _MAX else ReductionKind.SUM
    nothing = full((bags, width), 0, weight.dtype)
    sources = Sources((entries.size[0], width), lambda i: (bag.at(i[:1]), i[1]), brought, used)
    begin = neutral_element(kind, weight.dtype)
    made = combine(b, nothing, kind, sources, lambda _: begin)
    counts = count_sources(
        b, (bags,), Sources(entries.size, lambda i: (bag.at(i),), entries.at, used)
    )

    def read(i: Index) -> Value:
        """The mean or the maximum; 0 for an empty bag."""
        count, value = counts.at(i[:1]), made.at(i)
        if mode == _MEAN:
            value = value / upcast(call("maximum", count, 1), made.dtype)
        return call("where", count > 0, value, 0)

    result = made if mode == _SUM else Tensor(made.size, made.dtype, read)
    found = _maxima(b, made, counts, entries, rows, sources) if mode == _MAX else None
    return (materialize(b, result), *_backward_outputs(b, mode, bag, counts, found))


def _bags(b: Builder, count: Expr, offsets: Tensor) -> Tensor:
    """The bag of each entry: the number of offsets at or before it, minus one."""

    def inside(i: Index) -> Value:
        return upcast(offsets.at(i), DType.I64) < index_value(count)

    begun = count_sources(
        b, (count,), Sources(offsets.size, lambda i: (offsets.at(i),), offsets.at, inside)
    )
    before = const(1, DType.I64)

    def read(i: Index) -> Value:
        return upcast(begun.at(i), DType.I64)

    running = b.scan((count,), 0, ReductionKind.SUM, read, DType.I64)
    return Tensor((count,), DType.I64, lambda i: running.at(i) - before)


def _maxima(
    b: Builder, made: Tensor, counts: Tensor, entries: Tensor, rows: Expr, sources: Sources
) -> Tensor:
    """The row of each maximum: that of the first entry of the bag that equals it."""
    bags, width = made.size
    count = entries.size[0]

    def greatest(i: Index) -> Value:
        place, column = sources.places(i)
        assert sources.condition is not None and not isinstance(place, sympy.Expr)
        assert isinstance(column, sympy.Expr)
        bag = Tensor((count, width), DType.I64, lambda _: place)
        top = b.indirect(bag, i, bags, lambda n: made.at((n, column)), wrap=False)
        same = call("eq", sources.value(i), upcast(top, made.dtype))
        return trees.all_of(sources.condition(i), same)

    first = b.scatter(
        (bags, width),
        DType.I64,
        ReductionKind.MIN,
        lambda _: index_value(count),
        sources.size,
        sources.places,
        lambda i: index_value(i[0]),
        greatest,
    )

    def read(i: Index) -> Value:
        row = b.indirect(first, i, count, lambda n: entries.at((n,)), wrap=False)
        some = first.at(i) < index_value(count)
        return trees.masked_value(some, upcast(row, DType.I64), const(0, DType.I64))

    return Tensor((bags, width), DType.I64, read)


def _backward_outputs(
    b: Builder, mode: int, bag: Tensor, counts: Tensor, maxima: Tensor | None
) -> tuple[Tensor, ...]:
    """The second and later results, with the shapes and types that the graph states."""
    assert b.node is not None
    sizes = counts if mode != _SUM else full(counts.size, 0, DType.I64)
    every = (bag, sizes, maxima or sizes)
    results = []
    for place, tensor in enumerate(every[: len(b.node.outputs) - 1], start=1):
        meta = b.meta(place)
        results.append(materialize(b, Tensor(meta.size, meta.dtype, _zero_padded(tensor, meta))))
    return tuple(results)


def _zero_padded(tensor: Tensor, meta: TensorMeta) -> Reader:
    """The tensor's elements, padded with zeros: the graph may state a larger size or fewer
    dimensions."""
    nothing = const(0, meta.dtype)
    if len(meta.size) != tensor.rank:
        return lambda _: nothing

    def read(i: Index) -> Value:
        inside = (trees.less_than(x, extent) for x, extent in zip(i, tensor.size, strict=True))
        return trees.masked_value(trees.all_of(*inside), upcast(tensor.at(i), meta.dtype), nothing)

    return read if meta.size != tensor.size else lambda i: upcast(tensor.at(i), meta.dtype)


def composite_embedding_bag(
    b: Builder, weight: Tensor, padding_idx: Any = None, **rest: Any
) -> Any:
    """The op that models call, whose padding index may count from the end."""
    padding = -1 if padding_idx is None else padding_idx
    if padding < 0 and padding_idx is not None:
        padding = weight.size[0] + padding
        if not padding.is_Integer:
            raise Unsupported(
                "a negative padding index into a table of unknown size is not supported"
            )
    names = ("indices", "offsets", "mode", "per_sample_weights", "include_last_offset")
    given = {name: rest[name] for name in names}
    return embedding_bag(b, weight, **given, padding_idx=int(padding))
