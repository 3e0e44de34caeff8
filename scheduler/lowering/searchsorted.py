"""Search in sorted sequences, and membership tests.

The number of elements of a sorted sequence before a value is a sum of comparisons. A long sequence
is searched in steps: first count the preceding blocks of equal length, then the preceding elements
of the next block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv, as_expr, unbacked_sizes
from scheduler.ir.index.simplify import product
from scheduler.ir.operations import ReductionKind
from scheduler.ir.values import Value, call, const, index_value, upcast
from scheduler.lowering import trees, views
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import DATA_DEPENDENT_SIZE, Unsupported
from scheduler.lowering.pointwise import materialize, promoted_type
from scheduler.lowering.scans import running_reduction
from scheduler.lowering.tensor import Index, Tensor
from scheduler.lowering.views import reshape

_COMPARED_PER_STEP = 32  # elements or blocks compared in one step
_MAX_STEPS = (
    4  # at most, for a known length up to 32^4 elements; a longer one has a larger first step
)


def partition_point(
    b: Builder, size: tuple[Expr, ...], length: Expr, before: Callable[[Index, Expr], Value]
) -> Tensor:
    """The number of ``length`` elements that are ``before`` the value at each index. The predicate
    must hold for a prefix of the elements."""
    step = _COMPARED_PER_STEP
    if length.is_Integer:
        step = 1
        while step * _COMPARED_PER_STEP < int(length) and step < _COMPARED_PER_STEP ** (
            _MAX_STEPS - 1
        ):
            step *= _COMPARED_PER_STEP
    count: Tensor | None = None
    while True:
        count = _refine_count(b, size, length, before, step, count)
        if step == 1:
            return count
        step //= _COMPARED_PER_STEP


def _refine_count(
    b: Builder,
    size: tuple[Expr, ...],
    length: Expr,
    before: Callable[[Index, Expr], Value],
    step: int,
    coarse_count: Tensor | None,
) -> Tensor:
    """Add to ``coarse_count`` the elements of the following blocks of ``step`` elements that lie
    entirely before the value."""
    blocks = (
        as_expr(_COMPARED_PER_STEP)
        if coarse_count
        else FloorDiv(length + (step - 1), as_expr(step))
    )
    zero = const(0, DType.I64)

    def read(index: Index, inner: Index) -> Value:
        last = step * inner[0] + (step - 1)
        if coarse_count is None:
            is_inside = trees.less_than(last, length)
            return trees.masked_value(is_inside, upcast(before(index, last), DType.I64), zero)
        position = coarse_count.at(index) + index_value(last)
        is_inside = position < index_value(length)
        position_tensor = Tensor((), DType.I64, lambda _: position)
        is_before = b.indirect(position_tensor, (), length, lambda x: before(index, x), wrap=False)
        return trees.masked_value(is_inside, upcast(is_before, DType.I64), zero)

    def after(count: Value, index: Index) -> Value:
        elements = count if step == 1 else count * step
        return elements if coarse_count is None else coarse_count.at(index) + elements

    return b.reduction(size, (blocks,), ReductionKind.SUM, read, dtype=DType.I64, after=after)


def _search(
    b: Builder, sequence: Tensor, value: Any, right: bool, sorter: Tensor | None = None
) -> Tensor:
    dtype = promoted_type((sequence, value))
    meta = b.output_meta()
    length = sequence.size[-1]

    def element(index: Index, x: Expr) -> Value:
        row = index[:-1] if sequence.rank > 1 else ()
        if sorter is None:
            return upcast(sequence.at((*row, x)), dtype)
        element_value = b.indirect(sorter, (*row, x), length, lambda y: sequence.at((*row, y)))
        return upcast(element_value, dtype)

    def sought_at(index: Index) -> Value:
        if isinstance(value, Tensor):
            return upcast(value.at(index), dtype)
        return const(value, dtype)

    def before(index: Index, x: Expr) -> Value:
        sought = sought_at(index)
        is_before = call("le" if right else "lt", element(index, x), sought)
        # NaN is the greatest value: every element comes before it.
        return is_before | call("isnan", sought) if dtype.is_float else is_before

    if length == 0:
        positions = Tensor(meta.size, DType.I64, lambda _: const(0, DType.I64))
    else:
        positions = partition_point(b, meta.size, length, before)
    position_at = positions.at
    if meta.dtype is DType.I64:
        return positions
    return materialize(
        b, Tensor(meta.size, meta.dtype, lambda i: trees.cast(position_at(i), meta.dtype))
    )


def searchsorted(
    b: Builder,
    sorted_sequence: Tensor,
    self: Any,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
    **_: Any,
) -> Tensor:
    """The insertion index of each value that keeps the sequence sorted."""
    after = bool(right) if side is None else side == "right"
    return _search(b, sorted_sequence, self, after, sorter)


def bucketize(b: Builder, self: Any, boundaries: Tensor, right: bool = False, **_: Any) -> Tensor:
    return _search(b, boundaries, self, bool(right))


_MAX_COMPARED = 1024  # maximum number of values that each element is compared with


def isin(
    b: Builder,
    elements: Any = None,
    test_elements: Any = None,
    element: Any = None,
    test_element: Any = None,
    invert: bool = False,
    **_: Any,
) -> Tensor:
    """Whether each element equals one of the test elements. NaN equals nothing."""
    queries = elements if elements is not None else element
    candidates = test_elements if test_elements is not None else test_element
    size = b.output_meta().size
    dtype = promoted_type((queries, candidates))

    def value(index: Index) -> Value:
        return (
            upcast(queries.at(index), dtype)
            if isinstance(queries, Tensor)
            else const(queries, dtype)
        )

    def answer(is_member: Value) -> Value:
        return ~is_member if invert else is_member

    if not isinstance(candidates, Tensor):
        candidate = const(candidates, dtype)
        return materialize(
            b, Tensor(size, DType.BOOL, lambda i: answer(call("eq", value(i), candidate)))
        )
    count = product(candidates.size)
    flat = reshape(b, candidates, (count,))
    if count.is_Integer and int(count) > _MAX_COMPARED:
        return _isin_sorted(b, size, flat, dtype, value, answer)
    return b.reduction(
        size,
        (count,),
        ReductionKind.ANY,
        lambda i, j: call("eq", value(i), upcast(flat.at(j), dtype)),
        dtype=DType.BOOL,
        accumulate=DType.BOOL,
        after=lambda is_member, _: answer(is_member),
    )


def _isin_sorted(
    b: Builder,
    size: tuple[Expr, ...],
    test_elements: Tensor,
    dtype: DType,
    value_at: Callable[[Index], Value],
    finish: Callable[[Value], Value],
) -> Tensor:
    """``isin`` by binary search: compare the value with the element at its insertion index."""
    length = test_elements.size[0]
    ordered = b.sort(test_elements, 0)[0]
    insertion = partition_point(
        b, size, length, lambda i, x: upcast(ordered.at((x,)), dtype) < value_at(i)
    )

    def read(index: Index) -> Value:
        position = insertion.at(index)
        is_inside = position < index_value(length)
        position_tensor = Tensor((), DType.I64, lambda _: position)
        is_equal = b.indirect(
            position_tensor,
            (),
            length,
            lambda x: call("eq", upcast(ordered.at((x,)), dtype), value_at(index)),
            wrap=False,
        )
        return finish(is_inside & is_equal)

    return materialize(b, Tensor(size, DType.BOOL, read))


def repeat_interleave(
    b: Builder, repeats: Any, self: Tensor | None = None, dim: Any = None, **_: Any
) -> Tensor:
    """Repeat each element as many times as ``repeats`` states; without a tensor, return the
    elements' indices. Counts read from a tensor are accumulated, and each position of the result is
    searched there."""
    if isinstance(repeats, int) and self is not None:
        return views.repeat_interleave(b, repeats, self, dim)
    meta = b.output_meta()
    if not isinstance(repeats, Tensor) or any(unbacked_sizes(extent) for extent in meta.size):
        raise Unsupported(DATA_DEPENDENT_SIZE.reason)
    if self is None:
        if 0 in (repeats.size[0], meta.size[0]):
            return Tensor(meta.size, meta.dtype, lambda _: const(0, meta.dtype))
        source_at = _sources(b, repeats, repeats.size[0], meta.size[0])
        return materialize(
            b, Tensor(meta.size, meta.dtype, lambda i: trees.cast(source_at(i), meta.dtype))
        )
    if dim is None:
        self = views.reshape(b, self, (product(self.size),))
    axis = views.normalize_dim(0 if dim is None else dim, self.rank)
    length = self.size[axis]
    if 0 in meta.size or length == 0:
        return Tensor(meta.size, meta.dtype, lambda _: const(0, meta.dtype))
    source = _sources(b, repeats, length, meta.size[axis])
    source_positions = Tensor(meta.size[axis : axis + 1], DType.I64, source)
    element_at = self.at

    def element(i: Index) -> Value:
        result_position = i[axis : axis + 1]
        return b.indirect(
            source_positions,
            result_position,
            length,
            lambda x: element_at((*i[:axis], x, *i[axis + 1 :])),
        )

    return materialize(b, Tensor(meta.size, meta.dtype, element))


def _sources(b: Builder, repeats: Tensor, length: Expr, size: Expr) -> Callable[[Index], Value]:
    """Return the source position, below ``length``, of each of ``size`` results."""
    counts = views.broadcast(views.reshape(b, repeats, (product(repeats.size),)), (length,))
    wide_counts = Tensor(counts.size, DType.I64, lambda i: upcast(counts.at(i), DType.I64))
    sums = running_reduction(b, wide_counts, 0, ReductionKind.SUM, DType.I64)

    def before(index: Index, x: Expr) -> Value:
        return sums.at((x,)) <= index_value(index[0])

    return partition_point(b, (size,), length, before).at
