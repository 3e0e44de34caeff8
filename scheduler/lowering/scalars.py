# ruff: noqa: ARG001 - rules have the signature of their op
"""Numbers that are neither tensors nor sizes: values that a model computes from its sizes in floats
and truth values, or reads from a tensor with ``item``. Each is a tree that its users read in place.

Floats are float64 and integers int64, as in torch.export.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy

from scheduler.ir.check import node_references
from scheduler.ir.dtypes import DType
from scheduler.ir.index.facts import is_equal
from scheduler.ir.values import Value, call, const, index_value, upcast
from scheduler.lowering import layout, trees
from scheduler.lowering.builder import Builder
from scheduler.lowering.errors import Unsupported
from scheduler.lowering.tensor import Scalar, Tensor

_ZERO = sympy.Integer(0)


def scalar(value: Value) -> Scalar:
    """The number with this tree."""
    return Scalar((), value.dtype, lambda _: value)


def scalar_tree(number: Any) -> Value:
    """A number as a tree of its kind: float64, int64 or bool."""
    if isinstance(number, Scalar):
        return number.at(())
    if isinstance(number, bool):
        return const(number, DType.BOOL)
    if isinstance(number, int | float):
        return const(number, DType.F64 if isinstance(number, float) else DType.I64)
    if isinstance(number, sympy.Expr):
        return index_value(number)
    raise Unsupported(f"arithmetic on sizes with a {type(number).__name__} is not supported")


def _promote(values: tuple[Value, ...]) -> tuple[Value, ...]:
    """Convert to the common type in Python's arithmetic."""
    floats = any(value.dtype.is_float for value in values)
    return tuple(upcast(value, DType.F64 if floats else DType.I64) for value in values)


def arithmetic(op: str) -> Callable[..., Scalar]:
    """The rule of an arithmetic function or comparison of that name."""
    return scalar_rule(lambda *values: call(op, *_promote(values)))


def float_function(op: str) -> Callable[..., Scalar]:
    """The rule of the function of that name, computed in float64 for all kinds of numbers."""
    return scalar_rule(lambda *values: call(op, *(upcast(value, DType.F64) for value in values)))


def logical(op: str) -> Callable[..., Scalar]:
    """The rule of ``and`` or ``or``; bitwise for integers."""

    def combine(*values: Value) -> Value:
        if all(value.dtype is DType.BOOL for value in values):
            return call(f"logical_{op}", *values)
        return call(f"bitwise_{op}", *_promote(values))

    return scalar_rule(combine)


def to_integer(op: str) -> Callable[..., Scalar]:
    """The rule that rounds a float to an integer with the function of that name."""

    def whole(value: Value) -> Value:
        if not value.dtype.is_float:
            return upcast(value, DType.I64)
        return trees.cast(call(op, value), DType.I64)

    return scalar_rule(whole)


def scalar_rule(combine: Callable[..., Value]) -> Callable[..., Scalar]:
    """The rule of a function of the trees of the op's numbers."""

    # Operators of Python have an argument named b.
    def rule(b: Builder, /, **numbers: Any) -> Scalar:
        values = [scalar_tree(number) for number in numbers.values()]
        return scalar(combine(*values))

    return rule


negative = arithmetic("neg")
identity = scalar_rule(lambda value: value)
to_float = scalar_rule(lambda value: upcast(value, DType.F64))
logical_not = scalar_rule(lambda value: ~upcast(value, DType.BOOL))
select = scalar_rule(lambda condition, *values: call("where", condition, *_promote(values)))


def round_op(b: Builder, number: Any, ndigits: int | None = None) -> Scalar:
    if ndigits is not None:
        raise Unsupported("rounding a number to digits is not supported")
    result: Scalar = to_integer("round")(b, number=number)
    return result


def item(b: Builder, self: Tensor) -> Scalar:
    """The only element of a tensor; kernels read it where they use it."""
    value = self.at((_ZERO,) * self.rank)
    if self.dtype.is_float:
        return scalar(upcast(value, DType.F64))
    return scalar(value if self.dtype is DType.BOOL else upcast(value, DType.I64))


def is_contiguous(b: Builder, self: Tensor, memory_format: str | None = None) -> Scalar:
    """Uses the strides that the export states."""
    if memory_format not in (None, "contiguous_format"):
        raise Unsupported(f"a contiguity test for memory format {memory_format} is not supported")
    assert b.node is not None
    meta = b.graph.tensors[next(node_references(b.node))]
    contiguous = layout.contiguous_strides(meta.size)
    is_dense = all(
        size == 1 or is_equal(stride, step)
        for size, stride, step in zip(meta.size, meta.stride, contiguous, strict=True)
    )
    return scalar(const(is_dense, DType.BOOL))
