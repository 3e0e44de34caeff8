"""Tensors made without inputs: constants and ranges, computed where they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr, TensorMeta
from scheduler.ir.index.functions import as_expr
from scheduler.ir.values import Cast, IndexValue, Value
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
        literal = trees.const(value, dtype)
        return Tensor(size, dtype, lambda _: literal)
    expr = as_expr(value)
    return Tensor(size, dtype, lambda _: trees.upcast(IndexValue(expr, DType.I64), dtype))


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
        return _late_arange(meta, start, step)
    if isinstance(start, float) or isinstance(step, float):
        first, by = trees.const(start, meta.dtype), trees.const(step, meta.dtype)
        return Tensor(
            meta.size,
            meta.dtype,
            lambda i: trees.call(
                "add",
                first,
                trees.call("mul", by, trees.upcast(trees.index_value(i[0]), meta.dtype)),
            ),
        )
    begin, by_int = as_expr(start), as_expr(step)
    if meta.dtype in (DType.I64, DType.I32):
        return Tensor(
            meta.size, meta.dtype, lambda i: IndexValue(begin + by_int * i[0], meta.dtype)
        )
    held = meta.dtype.compute_dtype
    return Tensor(
        meta.size, meta.dtype, lambda i: Cast(trees.index_value(begin + by_int * i[0]), held)
    )


def _late_arange(meta: TensorMeta, start: Argument, step: Argument) -> Tensor:
    """arange with bounds known only at run time: computed in float64 or int64, as in torch."""
    kind = DType.F64 if promoted_type((start, step)).is_float else DType.I64

    def read(index: Index) -> Value:
        first, by = (element(one, (), kind) for one in (start, step))
        place = trees.upcast(trees.index_value(index[0]), kind)
        return trees.cast(trees.call("add", first, trees.call("mul", by, place)), meta.dtype)

    return Tensor(meta.size, meta.dtype, read)


def linspace(b: Builder, start: Argument, end: Argument, steps: int, **_: Any) -> Tensor:
    return spaced_values(b, start, end, steps, lambda value: value, in_type=True)


def logspace(
    b: Builder, start: Argument, end: Argument, steps: int, base: float = 10.0, **_: Any
) -> Tensor:
    """``base`` to evenly spaced powers."""

    def power(value: Value) -> Value:
        return trees.call("pow", trees.const(base, value.dtype), value)

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
    held = dtype.compute_dtype if dtype.is_inexact else DType.F64

    def rounded(value: Value) -> Value:
        return trees.upcast(round_exactly(value, dtype), held) if dtype in _NARROW else value

    def stepped(value: Value) -> Value:
        return rounded(value) if in_type else value

    def given_bound(value: Argument) -> Value:
        wide = DType.C128 if isinstance(value, complex) else DType.F64
        return element(value, (), value.dtype if isinstance(value, Tensor) else wide)

    def bound(value: Argument) -> Value:
        given = given_bound(value)
        return rounded(
            trees.upcast(given if dtype.is_inexact else trees.upcast(given, dtype), held)
        )

    def read(i: Index) -> Value:
        if steps == 1:
            only = bound(start) if in_type else trees.upcast(given_bound(start), held)
            return trees.upcast(function(only), dtype)
        first, last = bound(start), bound(end)
        if dtype not in _NARROW and not (isinstance(start, Tensor) or isinstance(end, Tensor)):
            step: Value = trees.const(_width(start, end, dtype) / (steps - 1), held)
        else:
            width = rounded(trees.call("sub", last, first))
            step = stepped(trees.call("truediv", width, stepped(trees.const(steps - 1, held))))
        low, high = (
            stepped(trees.call("mul", step, stepped(trees.upcast(trees.index_value(n), held))))
            for n in (i[0], steps - 1 - i[0])
        )
        value = trees.call(
            "where",
            trees.less_than(i[0], as_expr(steps // 2)),
            stepped(trees.call("add", first, low)),
            stepped(trees.call("sub", last, high)),
        )
        return trees.upcast(function(value), dtype)

    return materialize(b, Tensor(meta.size, dtype, read))


def _width(start: Any, end: Any, dtype: DType) -> complex:
    return (end - start) * 1.0 if dtype.is_inexact else float(int(end) - int(start))


def triangle_indices(lower: bool) -> Callable[..., Tensor]:
    """Rows and columns of the positions of a triangle, in row-major order. Positions above a
    diagonal are those below a diagonal of the matrix rotated by half a turn, in reverse."""

    def rule(b: Builder, row: int, col: int, offset: int = 0, **_: Any) -> Tensor:
        meta = b.meta()
        count = meta.size[1]
        shift = offset if lower else col - row - offset

        def read(i: Index) -> Value:
            number = trees.index_value(i[1] if lower else count - 1 - i[1])
            places = _below(number, row, col, shift)
            if not lower:
                ends = (trees.index_value(row - 1), trees.index_value(col - 1))
                places = tuple(trees.call("sub", e, p) for e, p in zip(ends, places, strict=True))
            first = trees.call("eq", trees.index_value(i[0]), trees.index_value(0))
            return trees.upcast(trees.call("where", first, *places), meta.dtype)

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
        return trees.index_value(value)

    root = trees.call(
        "sqrt",
        trees.upcast(
            trees.call("add", trees.call("mul", number, whole(8)), whole((2 * first - 1) ** 2)),
            DType.F64,
        ),
    )
    half = trees.call(
        "mul",
        trees.call("sub", root, trees.const(2 * first - 1, DType.F64)),
        trees.const(0.5, DType.F64),
    )
    x = Cast(trees.call("floor", half), DType.I64)
    before = trees.call("mul", trees.call("add", x, whole(2 * first - 1)), x)
    column = trees.call("sub", number, trees.call("floordiv", before, whole(2)))
    rest = trees.call("sub", number, whole(within))
    inside = trees.call("lt", number, whole(within))
    low_row = trees.call(
        "add", trees.call("floordiv", rest, whole(max(col, 1))), whole(start + growing)
    )
    low_column = trees.call("remainder", rest, whole(max(col, 1)))
    return (
        trees.call("where", inside, trees.call("add", x, whole(start)), low_row),
        trees.call("where", inside, column, low_column),
    )


def eye(b: Builder, **_: Any) -> Tensor:
    meta = b.meta()

    def read(i: Index) -> Value:
        same = trees.call("eq", trees.index_value(i[0]), trees.index_value(i[1]))
        return trees.call("where", same, trees.const(1, meta.dtype), trees.const(0, meta.dtype))

    return materialize(b, Tensor(meta.size, meta.dtype, read))
