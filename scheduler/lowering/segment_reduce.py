# ruff: noqa: ARG001 - rules have the signature of their op
"""segment_reduce: reduce each segment of consecutive elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value, call, const, index_value, upcast
from scheduler.lowering.builder import Builder
from scheduler.lowering.creation import full
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.pointwise import materialize
from scheduler.lowering.scatter import Sources, combine, count_sources, neutral_element
from scheduler.lowering.tensor import Index, Tensor

_KIND_OF_NAME = {
    "sum": ReductionKind.SUM,
    "mean": ReductionKind.SUM,
    "prod": ReductionKind.PROD,
    "max": ReductionKind.MAX,
    "min": ReductionKind.MIN,
}


def segment_reduce(
    b: Builder,
    data: Tensor,
    reduce: str,
    lengths: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    initial: Any = None,
    unsafe: bool = False,
) -> Tensor:
    """Reduce the segments along ``axis``, for each index of the dimensions before it. ``initial``
    is included in each segment."""
    if reduce not in _KIND_OF_NAME:
        raise Unsupported(f"a reduction by {reduce!r} is not supported")
    ends = _segment_ends(b, lengths, offsets)
    segment = _segment_numbers(b, data.size[: axis + 1], ends)
    kind, meta, dtype = _KIND_OF_NAME[reduce], b.output_meta(), data.dtype
    initial_value = neutral_element(kind, dtype) if initial is None else const(initial, dtype)

    def places(i: Index) -> Sequence[Expr | Value]:
        return (*i[:axis], segment.at(i[: axis + 1]), *i[axis + 1 :])

    def is_in_segment(i: Index) -> Value:
        segment_count_value = index_value(ends.size[-1])
        return segment.at(i[: axis + 1]) < segment_count_value

    zeros = full(meta.size, 0, dtype)
    sources = Sources(data.size, places, data.at, is_in_segment)
    result = combine(b, zeros, kind, sources, lambda _: initial_value)
    if reduce != "mean":
        return materialize(b, result)
    counted_sources = Sources(data.size[: axis + 1], places, data.at, is_in_segment)
    counts = count_sources(b, meta.size[: axis + 1], counted_sources)
    empty_value = const(float("nan"), dtype) if initial is None else initial_value

    def read(i: Index) -> Value:
        count = counts.at(i[: axis + 1])
        divisor = upcast(call("maximum", count, 1), dtype)
        is_nonempty = count > 0
        return call("where", is_nonempty, result.at(i) / divisor, empty_value)

    return materialize(b, Tensor(meta.size, dtype, read))


def _segment_ends(b: Builder, lengths: Tensor | None, offsets: Tensor | None) -> Tensor:
    """The end of each segment, for each leading index."""
    if offsets is not None and lengths is None:
        end_size = (*offsets.size[:-1], offsets.size[-1] - 1)
        return offsets.view(end_size, lambda i: (*i[:-1], i[-1] + 1))
    if lengths is None:
        raise Unsupported("segments given by indices are not supported")

    def read(i: Index) -> Value:
        return upcast(lengths.at(i), DType.I64)

    return b.scan(lengths.size, lengths.rank - 1, ReductionKind.SUM, read, DType.I64)


def _segment_numbers(b: Builder, size: tuple[Expr, ...], ends: Tensor) -> Tensor:
    """The segment of each element: the number of segments that end at or before it."""

    def places(i: Index) -> Sequence[Expr | Value]:
        return (*i[:-1], ends.at(i))

    def is_used(i: Index) -> Value:
        return upcast(ends.at(i), DType.I64) < index_value(size[-1])

    end_counts = count_sources(b, size, Sources(ends.size, places, ends.at, is_used))

    def read(i: Index) -> Value:
        return upcast(end_counts.at(i), DType.I64)

    return b.scan(size, len(size) - 1, ReductionKind.SUM, read, DType.I64)
