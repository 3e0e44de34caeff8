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
    bags = b.output_meta(0).size[0]

    def used(i: Index) -> Value:
        row = upcast(entries.at(i[:1]), DType.I64)
        is_in_bag = bag.at(i[:1]) >= 0
        is_not_padding = call("ne", row, padding)
        return trees.all_of(is_in_bag, is_not_padding) if padding >= 0 else is_in_bag

    def row_element(i: Index) -> Value:
        value = b.indirect(entries, i[:1], rows, lambda row: weight.at((row, i[1])), wrap=False)
        value = upcast(value, weight.dtype)
        if per_sample_weights is None:
            return value
        return value * element(per_sample_weights, i[:1], weight.dtype)

    kind = ReductionKind.MAX if mode == _MAX else ReductionKind.SUM
    zeros = full((bags, width), 0, weight.dtype)
    sources = Sources((entries.size[0], width), lambda i: (bag.at(i[:1]), i[1]), row_element, used)
    initial = neutral_element(kind, weight.dtype)
    reduced = combine(b, zeros, kind, sources, lambda _: initial)
    counts = count_sources(
        b, (bags,), Sources(entries.size, lambda i: (bag.at(i),), entries.at, used)
    )

    def read(i: Index) -> Value:
        """The mean or the maximum; 0 for an empty bag."""
        count, value = counts.at(i[:1]), reduced.at(i)
        if mode == _MEAN:
            value = value / upcast(call("maximum", count, 1), reduced.dtype)
        return call("where", count > 0, value, 0)

    result = reduced if mode == _SUM else Tensor(reduced.size, reduced.dtype, read)
    maxima = _maxima(b, reduced, counts, entries, rows, sources) if mode == _MAX else None
    return (materialize(b, result), *_backward_outputs(b, mode, bag, counts, maxima))


def _bags(b: Builder, count: Expr, offsets: Tensor) -> Tensor:
    """The bag of each entry: the number of offsets at or before it, minus one."""

    def is_used(i: Index) -> Value:
        return upcast(offsets.at(i), DType.I64) < index_value(count)

    started = count_sources(
        b, (count,), Sources(offsets.size, lambda i: (offsets.at(i),), offsets.at, is_used)
    )
    one_bag = const(1, DType.I64)

    def read(i: Index) -> Value:
        return upcast(started.at(i), DType.I64)

    running = b.scan((count,), 0, ReductionKind.SUM, read, DType.I64)
    return Tensor((count,), DType.I64, lambda i: running.at(i) - one_bag)


def _maxima(
    b: Builder, maxima: Tensor, counts: Tensor, entries: Tensor, rows: Expr, sources: Sources
) -> Tensor:
    """The row of each maximum: that of the first entry of the bag that equals it."""
    bags, width = maxima.size
    count = entries.size[0]

    def is_maximum(i: Index) -> Value:
        bag_number, column = sources.places(i)
        assert sources.condition is not None and not isinstance(bag_number, sympy.Expr)
        assert isinstance(column, sympy.Expr)
        bag = Tensor((count, width), DType.I64, lambda _: bag_number)
        maximum = b.indirect(bag, i, bags, lambda n: maxima.at((n, column)), wrap=False)
        is_equal = call("eq", sources.value(i), upcast(maximum, maxima.dtype))
        return trees.all_of(sources.condition(i), is_equal)

    first_entry = b.scatter(
        (bags, width),
        DType.I64,
        ReductionKind.MIN,
        lambda _: index_value(count),
        sources.size,
        sources.places,
        lambda i: index_value(i[0]),
        is_maximum,
    )

    def read(i: Index) -> Value:
        row = b.indirect(first_entry, i, count, lambda n: entries.at((n,)), wrap=False)
        is_found = first_entry.at(i) < index_value(count)
        return trees.masked_value(is_found, upcast(row, DType.I64), const(0, DType.I64))

    return Tensor((bags, width), DType.I64, read)


def _backward_outputs(
    b: Builder, mode: int, bag: Tensor, counts: Tensor, maxima: Tensor | None
) -> tuple[Tensor, ...]:
    """The second and later results, with the shapes and types that the graph states."""
    assert b.node is not None
    sizes = counts if mode != _SUM else full(counts.size, 0, DType.I64)
    outputs = (bag, sizes, maxima or sizes)
    results = []
    for output_number, tensor in enumerate(outputs[: len(b.node.outputs) - 1], start=1):
        meta = b.output_meta(output_number)
        results.append(materialize(b, Tensor(meta.size, meta.dtype, _zero_padded(tensor, meta))))
    return tuple(results)


def _zero_padded(tensor: Tensor, meta: TensorMeta) -> Reader:
    """The tensor's elements, padded with zeros: the graph may state a larger size or fewer
    dimensions."""
    zero = const(0, meta.dtype)
    if len(meta.size) != tensor.rank:
        return lambda _: zero

    def read(i: Index) -> Value:
        conditions = (trees.less_than(x, extent) for x, extent in zip(i, tensor.size, strict=True))
        return trees.masked_value(trees.all_of(*conditions), upcast(tensor.at(i), meta.dtype), zero)

    return read if meta.size != tensor.size else lambda i: upcast(tensor.at(i), meta.dtype)


def composite_embedding_bag(
    b: Builder, weight: Tensor, padding_idx: Any = None, **options: Any
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
    arguments = {name: options[name] for name in names}
    return embedding_bag(b, weight, **arguments, padding_idx=int(padding))
