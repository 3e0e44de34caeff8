"""Tensors that are made from nothing: constants and ranges, read without memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr, TensorMeta
from scheduler.ir.index.functions import as_expr
from scheduler.ir.values import Cast, IndexValue, Value
from scheduler.lowering import trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.pointwise import Argument, element, promoted, stored
from scheduler.lowering.tensor import Index, Tensor


def full(size: tuple[Expr, ...], value: Argument, dtype: DType) -> Tensor:
    """The same number everywhere; a tensor has no dimensions."""
    if isinstance(value, Tensor):
        number = value.at(())
        return Tensor(size, dtype, lambda _: trees.cast(number, dtype))
    if isinstance(value, int | float | complex):
        literal = trees.const(value, dtype)
        return Tensor(size, dtype, lambda _: literal)
    expr = as_expr(value)
    return Tensor(size, dtype, lambda _: trees.held(IndexValue(expr, DType.I64), dtype))


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
                trees.call("mul", by, trees.held(trees.index_value(i[0]), meta.dtype)),
            ),
        )
    begin, by_int = as_expr(start), as_expr(step)
    if meta.dtype in (DType.I64, DType.I32):
        return Tensor(
            meta.size, meta.dtype, lambda i: IndexValue(begin + by_int * i[0], meta.dtype)
        )
    held = meta.dtype.compute
    return Tensor(
        meta.size, meta.dtype, lambda i: Cast(trees.index_value(begin + by_int * i[0]), held)
    )


def _late_arange(meta: TensorMeta, start: Argument, step: Argument) -> Tensor:
    """With bounds that are known while the model runs: in float64 or int64, as torch has them."""
    kind = DType.F64 if promoted((start, step)).is_float else DType.I64

    def read(index: Index) -> Value:
        first, by = (element(one, (), kind) for one in (start, step))
        place = trees.held(trees.index_value(index[0]), kind)
        return trees.cast(trees.call("add", first, trees.call("mul", by, place)), meta.dtype)

    return Tensor(meta.size, meta.dtype, read)


def linspace(b: Builder, start: float, end: float, steps: int, **_: Any) -> Tensor:
    """``start + i * step`` in the first half, ``end - (steps - 1 - i) * step`` in the second."""
    meta = b.meta()
    dtype = meta.dtype
    step = trees.const((end - start) / (steps - 1) if steps > 1 else 0, dtype)

    def read(i: Index) -> Value:
        low, high = (
            trees.call("mul", step, trees.held(trees.index_value(n), dtype))
            for n in (i[0], steps - 1 - i[0])
        )
        return trees.call(
            "where",
            trees.less(i[0], as_expr(steps // 2)),
            trees.call("add", trees.const(start, dtype), low),
            trees.call("sub", trees.const(end, dtype), high),
        )

    return stored(b, Tensor(meta.size, dtype, read))


def eye(b: Builder, **_: Any) -> Tensor:
    meta = b.meta()

    def read(i: Index) -> Value:
        same = trees.call("eq", trees.index_value(i[0]), trees.index_value(i[1]))
        return trees.call("where", same, trees.const(1, meta.dtype), trees.const(0, meta.dtype))

    return stored(b, Tensor(meta.size, meta.dtype, read))
