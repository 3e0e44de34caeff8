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
    meta = b.output_meta()
    return full(meta.size, fill_value, meta.dtype)


def constant(value: int) -> Callable[..., Tensor]:
    def rule(b: Builder, **_: Any) -> Tensor:
        meta = b.output_meta()
        return full(meta.size, value, meta.dtype)

    return rule


def fill(b: Builder, value: Argument, **_: Any) -> Tensor:
    meta = b.output_meta()
    if isinstance(value, Tensor) and value.dtype is meta.dtype:
        return value.view(meta.size, lambda _: ())
    return full(meta.size, value, meta.dtype)


def scalar_tensor(b: Builder, s: Argument, **_: Any) -> Tensor:
    meta = b.output_meta()
    return full(meta.size, s, meta.dtype)


def arange(b: Builder, start: Argument = 0, step: Argument = 1, **_: Any) -> Tensor:
    """``start + step * i``."""
    meta = b.output_meta()
    if isinstance(start, Tensor) or isinstance(step, Tensor):
        # Bounds known only at run time: computed in float64 or int64, as in torch.
        bound_dtype = DType.F64 if promoted_type((start, step)).is_float else DType.I64

        def read(index: Index) -> Value:
            first, increment = (element(bound, (), bound_dtype) for bound in (start, step))
            return trees.cast(
                first + increment * upcast(index_value(index[0]), bound_dtype), meta.dtype
            )

        return Tensor(meta.size, meta.dtype, read)
    if isinstance(start, float) or isinstance(step, float):
        first, increment = const(start, meta.dtype), const(step, meta.dtype)
        return Tensor(
            meta.size,
            meta.dtype,
            lambda i: first + increment * upcast(index_value(i[0]), meta.dtype),
        )
    start_expr, step_expr = as_expr(start), as_expr(step)
    if meta.dtype in (DType.I64, DType.I32):
        return Tensor(
            meta.size, meta.dtype, lambda i: IndexValue(start_expr + step_expr * i[0], meta.dtype)
        )
    compute_dtype = meta.dtype.compute_dtype
    return Tensor(
        meta.size,
        meta.dtype,
        lambda i: Cast(index_value(start_expr + step_expr * i[0]), compute_dtype),
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


_FLOAT16_DTYPES = (DType.F16, DType.BF16)


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
    meta = b.output_meta()
    dtype = meta.dtype
    compute_dtype = dtype.compute_dtype if dtype.is_inexact else DType.F64

    def rounded(value: Value) -> Value:
        return (
            upcast(round_exactly(value, dtype), compute_dtype)
            if dtype in _FLOAT16_DTYPES
            else value
        )

    def stepped(value: Value) -> Value:
        return rounded(value) if in_type else value

    def stated_bound(value: Argument) -> Value:
        number_dtype = DType.C128 if isinstance(value, complex) else DType.F64
        return element(value, (), value.dtype if isinstance(value, Tensor) else number_dtype)

    def bound(value: Argument) -> Value:
        stated = stated_bound(value)
        return rounded(upcast(stated if dtype.is_inexact else upcast(stated, dtype), compute_dtype))

    def read(i: Index) -> Value:
        if steps == 1:
            single = bound(start) if in_type else upcast(stated_bound(start), compute_dtype)
            return upcast(function(single), dtype)
        first, last = bound(start), bound(end)
        if dtype not in _FLOAT16_DTYPES and not (
            isinstance(start, Tensor) or isinstance(end, Tensor)
        ):
            low_number: Any = start
            high_number: Any = end
            if dtype.is_inexact:
                span = (high_number - low_number) * 1.0
            else:
                span = float(int(high_number) - int(low_number))
            step: Value = const(span / (steps - 1), compute_dtype)
        else:
            span_value = rounded(last - first)
            step = stepped(span_value / stepped(const(steps - 1, compute_dtype)))
        low, high = (
            stepped(step * stepped(upcast(index_value(step_count), compute_dtype)))
            for step_count in (i[0], steps - 1 - i[0])
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
        meta = b.output_meta()
        count = meta.size[1]
        shift = offset if lower else col - row - offset

        def read(i: Index) -> Value:
            number = index_value(i[1] if lower else count - 1 - i[1])
            position_pair = _position_below(number, row, col, shift)
            if not lower:
                ends = (index_value(row - 1), index_value(col - 1))
                position_pair = tuple(
                    end - coordinate for end, coordinate in zip(ends, position_pair, strict=True)
                )
            is_row_output = trees.equal(i[0], 0)
            return upcast(call("where", is_row_output, *position_pair), meta.dtype)

        return materialize(b, Tensor(meta.size, meta.dtype, read))

    return rule


def _position_below(number: Value, row: int, col: int, offset: int) -> tuple[Value, ...]:
    """Row and column of a position below a diagonal: first rows that grow by one, then full
    rows."""
    start = max(0, -offset)
    first_length = min(col, start + offset + 1)
    growing_rows = max(min(row - start, col - first_length + 1), 0)
    growing_elements = growing_rows * (2 * first_length + growing_rows - 1) // 2

    def integer(value: int) -> Value:
        return index_value(value)

    root = call(
        "sqrt", upcast(number * integer(8) + integer((2 * first_length - 1) ** 2), DType.F64)
    )
    row_estimate = (root - (2 * first_length - 1)) * 0.5
    x = Cast(call("floor", row_estimate), DType.I64)
    doubled_before = (x + integer(2 * first_length - 1)) * x
    column = number - call("floordiv", doubled_before, integer(2))
    full_row_position = number - integer(growing_elements)
    is_growing = number < integer(growing_elements)
    low_row = call("floordiv", full_row_position, integer(max(col, 1))) + integer(
        start + growing_rows
    )
    low_column = call("remainder", full_row_position, integer(max(col, 1)))
    return (
        call("where", is_growing, x + integer(start), low_row),
        call("where", is_growing, column, low_column),
    )


def eye(b: Builder, **_: Any) -> Tensor:
    meta = b.output_meta()

    def read(i: Index) -> Value:
        is_diagonal = trees.equal(i[0], i[1])
        return call("where", is_diagonal, const(1, meta.dtype), const(0, meta.dtype))

    return materialize(b, Tensor(meta.size, meta.dtype, read))
