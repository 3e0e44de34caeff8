"""Tensors made without inputs: constants and ranges, computed where they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import as_expr
from scheduler.ir.values import Cast, IndexValue, Value, call, const, index_value, upcast
from scheduler.lowering import trees
from scheduler.lowering.bitcast import round_exactly
from scheduler.lowering.builder import Builder
from scheduler.lowering.pointwise import Argument, element, materialize, promoted_type
from scheduler.lowering.tensor import Index, Tensor


def full(size: tuple[Expr, ...], value: Argument, dtype: DType) -> Tensor:
    """The same number everywhere; ``value`` may be a tensor without dimensions."""
    if isinstance(value, Tensor):
        number = value.at(())
        return Tensor(size, dtype, lambda _: trees.cast(number, dtype))
    if isinstance(value, int | float | complex):
        literal = const(value, dtype)
        return Tensor(size, dtype, lambda _: literal)
    expr = as_expr(value)
    return Tensor(size, dtype, lambda _: upcast(IndexValue(expr, DType.I64), dtype))


def full_op(b: Builder, fill_value: Argument, **_: Any) -> Tensor:
    meta = b.meta()
    return full(meta.size, fill_value, meta.dtype)


def constant(value: int) -> Callable[..., Tensor]:
    def rule(b: Builder, **_: Any) -> Tensor:
        meta = b.meta()
        return full(meta.size, value, meta.dtype)

    return rule


def fill(b: Builder, value: Argument, **_: Any) -> Tensor:
    meta = b.meta()
    if isinstance(value, Tensor) and value.dtype is meta.dtype:
        return value.view(meta.size, lambda _: ())
    return full(meta.size, value, meta.dtype)


def scalar_tensor(b: Builder, s: Argument, **_: Any) -> Tensor:
    meta = b.meta()
    return full(meta.size, s, meta.dtype)


def arange(b: Builder, start: Argument = 0, step: Argument = 1, **_: Any) -> Tensor:
    """``start + step * i``."""
    meta = b.meta()
    if isinstance(start, Tensor) or isinstance(step, Tensor):
        # Bounds known only at run time: computed in float64 or int64, as in torch.
        kind = DType.F64 if promoted_type((start, step)).is_float else DType.I64

        def read(index: Index) -> Value:
            first, by = (element(one, (), kind) for one in (start, step))
            return trees.cast(first + by * upcast(index_value(index[0]), kind), meta.dtype)

        return Tensor(meta.size, meta.dtype, read)
    if isinstance(start, float) or isinstance(step, float):
        first, by = const(start, meta.dtype), const(step, meta.dtype)
        return Tensor(
            meta.size, meta.dtype, lambda i: first + by * upcast(index_value(i[0]), meta.dtype)
        )
    begin, by_int = as_expr(start), as_expr(step)
    if meta.dtype in (DType.I64, DType.I32):
        return Tensor(
            meta.size, meta.dtype, lambda i: IndexValue(begin + by_int * i[0], meta.dtype)
        )
    compute_dtype = meta.dtype.compute_dtype
    return Tensor(
        meta.size, meta.dtype, lambda i: Cast(index_value(begin + by_int * i[0]), compute_dtype)
    )


def linspace(b: Builder, start: Argument, end: Argument, steps: int, **_: Any) -> Tensor:
    return spaced_values(b, start, end, steps, lambda value: value, in_type=True)


def logspace(
    b: Builder, start: Argument, end: Argument, steps: int, base: float = 10.0, **_: Any
) -> Tensor:
    """``base`` to evenly spaced powers."""

    def power(value: Value) -> Value:
        return call("pow", base, value)

    return spaced_values(b, start, end, steps, power, in_type=False)


_NARROW = (DType.F16, DType.BF16)


def spaced_values(
    b: Builder,
    start: Argument,
    end: Argument,
    steps: int,
    function: Callable[[Value], Value],
    *,
    in_type: bool,
) -> Tensor:
    """``function`` of ``start + i * step`` in the first half and ``end - (steps - 1 - i) * step``
    in the second. Integers are computed in float64 and truncated, between truncated bounds. 16-bit
    bounds and their difference are rounded to their type. With ``in_type`` (linspace) every
    intermediate value is rounded too, element numbers included. Without it (logspace) the bound of
    a single element is not rounded."""
    meta = b.meta()
    dtype = meta.dtype
    compute_dtype = dtype.compute_dtype if dtype.is_inexact else DType.F64

    def rounded(value: Value) -> Value:
        return upcast(round_exactly(value, dtype), compute_dtype) if dtype in _NARROW else value

    def stepped(value: Value) -> Value:
        return rounded(value) if in_type else value

    def given_bound(value: Argument) -> Value:
        wide = DType.C128 if isinstance(value, complex) else DType.F64
        return element(value, (), value.dtype if isinstance(value, Tensor) else wide)

    def bound(value: Argument) -> Value:
        given = given_bound(value)
        return rounded(upcast(given if dtype.is_inexact else upcast(given, dtype), compute_dtype))

    def read(i: Index) -> Value:
        if steps == 1:
            only = bound(start) if in_type else upcast(given_bound(start), compute_dtype)
            return upcast(function(only), dtype)
        first, last = bound(start), bound(end)
        if dtype not in _NARROW and not (isinstance(start, Tensor) or isinstance(end, Tensor)):
            low_number: Any = start
            high_number: Any = end
            if dtype.is_inexact:
                span = (high_number - low_number) * 1.0
            else:
                span = float(int(high_number) - int(low_number))
            step: Value = const(span / (steps - 1), compute_dtype)
        else:
            width = rounded(last - first)
            step = stepped(width / stepped(const(steps - 1, compute_dtype)))
        low, high = (
            stepped(step * stepped(upcast(index_value(n), compute_dtype)))
            for n in (i[0], steps - 1 - i[0])
        )
        value = call(
            "where",
            trees.less_than(i[0], as_expr(steps // 2)),
            stepped(first + low),
            stepped(last - high),
        )
        return upcast(function(value), dtype)

    return materialize(b, Tensor(meta.size, dtype, read))


def triangle_indices(lower: bool) -> Callable[..., Tensor]:
    """Rows and columns of the positions of a triangle, in row-major order. Positions above a
    diagonal are those below a diagonal of the matrix rotated by half a turn, in reverse."""

    def rule(b: Builder, row: int, col: int, offset: int = 0, **_: Any) -> Tensor:
        meta = b.meta()
        count = meta.size[1]
        shift = offset if lower else col - row - offset

        def read(i: Index) -> Value:
            number = index_value(i[1] if lower else count - 1 - i[1])
            places = _below(number, row, col, shift)
            if not lower:
                ends = (index_value(row - 1), index_value(col - 1))
                places = tuple(e - p for e, p in zip(ends, places, strict=True))
            first = trees.equal(i[0], 0)
            return upcast(call("where", first, *places), meta.dtype)

        return materialize(b, Tensor(meta.size, meta.dtype, read))

    return rule


def _below(number: Value, row: int, col: int, offset: int) -> tuple[Value, ...]:
    """Row and column of a position below a diagonal: first rows that grow by one, then full
    rows."""
    start = max(0, -offset)
    first = min(col, start + offset + 1)
    growing = max(min(row - start, col - first + 1), 0)
    within = growing * (2 * first + growing - 1) // 2

    def whole(value: int) -> Value:
        return index_value(value)

    root = call("sqrt", upcast(number * whole(8) + whole((2 * first - 1) ** 2), DType.F64))
    half = (root - (2 * first - 1)) * 0.5
    x = Cast(call("floor", half), DType.I64)
    before = (x + whole(2 * first - 1)) * x
    column = number - call("floordiv", before, whole(2))
    rest = number - whole(within)
    inside = number < whole(within)
    low_row = call("floordiv", rest, whole(max(col, 1))) + whole(start + growing)
    low_column = call("remainder", rest, whole(max(col, 1)))
    return (
        call("where", inside, x + whole(start), low_row),
        call("where", inside, column, low_column),
    )


def eye(b: Builder, **_: Any) -> Tensor:
    meta = b.meta()

    def read(i: Index) -> Value:
        same = trees.equal(i[0], i[1])
        return call("where", same, const(1, meta.dtype), const(0, meta.dtype))

    return materialize(b, Tensor(meta.size, meta.dtype, read))
