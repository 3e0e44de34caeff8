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

_KINDS = {
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
    if reduce not in _KINDS:
        raise Unsupported(f"a reduction by {reduce!r} is not supported")
    ends = _ends(b, lengths, offsets)
    segment = _segments(b, data.size[: axis + 1], ends)
    kind, meta, held = _KINDS[reduce], b.meta(), data.dtype
    begin = neutral_element(kind, held) if initial is None else const(initial, held)

    def places(i: Index) -> Sequence[Expr | Value]:
        return (*i[:axis], segment.at(i[: axis + 1]), *i[axis + 1 :])

    def inside(i: Index) -> Value:
        most = index_value(ends.size[-1])
        return segment.at(i[: axis + 1]) < most

    nothing = full(meta.size, 0, held)
    sources = Sources(data.size, places, data.at, inside)
    result = combine(b, nothing, kind, sources, lambda _: begin)
    if reduce != "mean":
        return materialize(b, result)
    each = Sources(data.size[: axis + 1], places, data.at, inside)
    counts = count_sources(b, meta.size[: axis + 1], each)
    kept = const(float("nan"), held) if initial is None else begin

    def read(i: Index) -> Value:
        number = counts.at(i[: axis + 1])
        least = upcast(call("maximum", number, 1), held)
        some = number > 0
        return call("where", some, result.at(i) / least, kept)

    return materialize(b, Tensor(meta.size, held, read))


def _ends(b: Builder, lengths: Tensor | None, offsets: Tensor | None) -> Tensor:
    """The end of each segment, for each leading index."""
    if offsets is not None and lengths is None:
        later = (*offsets.size[:-1], offsets.size[-1] - 1)
        return offsets.view(later, lambda i: (*i[:-1], i[-1] + 1))
    if lengths is None:
        raise Unsupported("segments given by indices are not supported")

    def read(i: Index) -> Value:
        return upcast(lengths.at(i), DType.I64)

    return b.scan(lengths.size, lengths.rank - 1, ReductionKind.SUM, read, DType.I64)


def _segments(b: Builder, size: tuple[Expr, ...], ends: Tensor) -> Tensor:
    """The segment of each element: the number of segments that end at or before it."""

    def places(i: Index) -> Sequence[Expr | Value]:
        return (*i[:-1], ends.at(i))

    def inside(i: Index) -> Value:
        return upcast(ends.at(i), DType.I64) < index_value(size[-1])

    ended = count_sources(b, size, Sources(ends.size, places, ends.at, inside))

    def read(i: Index) -> Value:
        return upcast(ended.at(i), DType.I64)

    return b.scan(size, len(size) - 1, ReductionKind.SUM, read, DType.I64)
