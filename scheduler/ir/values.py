"""The value that a kernel computes at one point: a small tree of loads, constants and calls.

Views are free: a view only changes the index expressions of a ``Load``. Trees are frozen and
hashable; they are independent of C++ (codegen prints them) and of NumPy (the reference runs the
graph's own ops).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias

import sympy

from scheduler.fuel import spend_fuel
from scheduler.ir.dtypes import DType
from scheduler.ir.encoding import round_to_dtype
from scheduler.ir.graph import Expr
from scheduler.ir.index.facts import is_nonnegative
from scheduler.ir.pointwise import FUNCTIONS, Result

Number: TypeAlias = int | float | complex | bool

COMPARISONS = frozenset(("lt", "le", "gt", "ge", "eq", "ne"))
_INDEX_FUNCTIONS: Mapping[str, Callable[..., Expr]] = MappingProxyType(
    {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg}
)


def _operation(op: str, *args: Any) -> Value:
    return call(op, *args)


def _operators(op: str) -> tuple[Callable[[Any, Any], Value], Callable[[Any, Any], Value]]:
    """Return the method of an operator, and that of its reflected form."""
    return (
        lambda self, other: _operation(op, self, other),
        lambda self, other: _operation(op, other, self),
    )


class _Operators:
    """Python's operators on value trees, with numbers as literals: ``x * 2 + 1``, ``x < 0``.

    ``&``, ``|`` and ``~`` are logical. Trees are compared by structure with ``==``.
    """

    __add__, __radd__ = _operators("add")
    __sub__, __rsub__ = _operators("sub")
    __mul__, __rmul__ = _operators("mul")
    __truediv__, __rtruediv__ = _operators("truediv")
    __lt__ = _operators("lt")[0]
    __le__ = _operators("le")[0]
    __gt__ = _operators("gt")[0]
    __ge__ = _operators("ge")[0]
    __and__ = _operators("logical_and")[0]
    __or__ = _operators("logical_or")[0]

    def __neg__(self) -> Value:
        return _operation("neg", self)

    def __invert__(self) -> Value:
        return _operation("logical_not", self)


@dataclass(frozen=True)
class Indirect:
    """A loop-invariant symbol inside a ``Load``'s index whose value is read from a tensor.

    ``value`` is an integer tree. A negative value counts from the end of an axis of ``size``
    elements, as in Python (``wrap`` False: it is known not to be negative). A value outside the
    axis is a caller's error; kernels clamp it so that no memory outside the buffer is accessed.
    """

    symbol: sympy.Symbol
    value: Value
    size: Expr
    wrap: bool = True


@dataclass(frozen=True)
class Load(_Operators):
    """Read one element: ``index`` has one expression for each dimension of the buffer."""

    buffer: str
    index: tuple[Expr, ...]
    dtype: DType
    indirect: tuple[Indirect, ...] = ()


@dataclass(frozen=True)
class Const(_Operators):
    """A literal. ``value`` may be inf or nan."""

    value: int | float | complex | bool
    dtype: DType


@dataclass(frozen=True)
class IndexValue(_Operators):
    """An integer expression of sizes and loop variables, as a value (arange, a size)."""

    expr: Expr
    dtype: DType


@dataclass(frozen=True)
class Call(_Operators):
    """A pointwise function of ``ir/pointwise.py``; ``dtype`` is the result's.

    ``node`` is the graph node that it implements, if known: it is written as a comment beside the
    line, and is not part of the value.
    """

    op: str
    args: tuple[Value, ...]
    dtype: DType
    node: str = field(default="", compare=False)


@dataclass(frozen=True)
class Cast(_Operators):
    """Conversion to another element type; it rounds when the type is narrower.

    ``decides``: its readers depend on the exact rounding (such as comparisons), so that the
    reference rounds too, which otherwise keeps floats in float64.
    """

    value: Value
    dtype: DType
    node: str = field(default="", compare=False)
    decides: bool = field(default=False, metadata={"later": True})

    @property
    def rounds(self) -> bool:
        """Whether the cast changes the value that kernels hold."""
        source = self.value.dtype
        return source is not self.dtype and self.dtype is not source.compute_dtype


@dataclass(frozen=True)
class Masked(_Operators):
    """``value`` where ``condition`` holds, else ``other``; ``value`` is not read elsewhere."""

    condition: Value
    value: Value
    other: Value

    @property
    def dtype(self) -> DType:
        return self.value.dtype


@dataclass(frozen=True)
class Accumulator(_Operators):
    """The result of the template (or of an earlier reduction stage, by name) at this point."""

    dtype: DType
    name: str = "acc"


Value: TypeAlias = Load | Const | IndexValue | Call | Cast | Masked | Accumulator


_NODES_PER_FUEL = 16  # tree nodes visited per step
_LEAVES = (Const, IndexValue, Accumulator)


def children(value: Value) -> tuple[Value, ...]:
    """Return the direct children of a tree, including those in indirect indices."""
    if isinstance(value, Call):
        return value.args
    if isinstance(value, Cast):
        return (value.value,)
    if isinstance(value, Masked):
        return (value.condition, value.value, value.other)
    if isinstance(value, Load):
        return tuple(indirect.value for indirect in value.indirect)
    return ()


def walk(value: Value) -> Iterator[Value]:
    """Yield every node of a tree in pre-order."""
    spend_fuel()
    pending = [value]
    visited = 0
    while pending:
        part = pending.pop()
        visited += 1
        if visited % _NODES_PER_FUEL == 0:
            spend_fuel()
        yield part
        if not isinstance(part, _LEAVES):
            pending.extend(reversed(children(part)))


def loads(value: Value) -> Iterator[Load]:
    """Return all loads of a tree."""
    return (part for part in walk(value) if isinstance(part, Load))


def rebuild(value: Value, change: Callable[[Value], Value | None]) -> Value:
    """Replace nodes of a tree, outermost first; where ``change`` returns None, descend."""
    spend_fuel()
    changed = change(value)
    return map_children(value, partial(rebuild, change=change)) if changed is None else changed


def map_children(value: Value, change: Callable[[Value], Value]) -> Value:
    """Return a node with its direct children changed."""
    if isinstance(value, Call):
        return replace(value, args=tuple(map(change, value.args)))
    if isinstance(value, Cast):
        return replace(value, value=change(value.value))
    if isinstance(value, Masked):
        return Masked(change(value.condition), change(value.value), change(value.other))
    if isinstance(value, Load) and value.indirect:
        indirect = tuple(replace(i, value=change(i.value)) for i in value.indirect)
        return replace(value, indirect=indirect)
    return value


def const(value: Number, dtype: DType) -> Const:
    """A literal in the compute type of ``dtype``."""
    compute_dtype = dtype.compute_dtype
    if compute_dtype is DType.BOOL:
        return Const(bool(value), compute_dtype)
    if dtype.is_float8:
        value = float(round_to_dtype(_real(value), dtype))
    if compute_dtype.is_complex:
        return Const(complex(value), compute_dtype)
    number = _real(value)
    literal = float(number) if compute_dtype.is_float else _wrapped(int(number), compute_dtype)
    return Const(literal, compute_dtype)


def _wrapped(number: int, dtype: DType) -> int:
    """An integer wrapped to the bits of an integer type."""
    bits = 8 * dtype.itemsize
    number &= 2**bits - 1
    signed = not dtype.is_unsigned and number >= 2 ** (bits - 1)
    return number - 2**bits if signed else number


def index_value(expr: Expr | int) -> Value:
    """An integer expression as an i64 value."""
    return IndexValue(sympy.Integer(expr) if isinstance(expr, int) else expr, DType.I64)


def upcast(value: Value, dtype: DType) -> Value:
    """Convert to the compute type of ``dtype``: f32 for f16 and bf16, without rounding to them."""
    if value.dtype.compute_dtype is dtype.compute_dtype:
        return value
    if isinstance(value, Const):
        return convert_literal(value, dtype.compute_dtype)
    if isinstance(value, IndexValue) and dtype in (DType.I64, DType.I32):
        return replace(value, dtype=dtype)
    return Cast(value, dtype.compute_dtype)


def _real(number: int | float | complex) -> int | float:
    return number.real if isinstance(number, complex) else number


def convert_literal(value: Const, dtype: DType) -> Value:
    if dtype is DType.BOOL:
        return Const(bool(value.value), dtype)
    if dtype.is_complex:
        return Const(complex(value.value), dtype)
    number = _real(value.value)
    if dtype.is_float:
        return Const(float(number), dtype)
    if isinstance(number, float) and not number.is_integer():
        if not math.isfinite(number):
            return Cast(value, dtype)
        number = int(number)
    return Const(_wrapped(int(number), dtype), dtype)


def call(op: str, *args: Value | Number) -> Value:
    """A call of a function of ``ir/pointwise.py``; all arguments must have one compute type.

    A number stands for a literal of the other arguments' type. Index arithmetic and trivial logic
    are folded; the C++ compiler does the rest.
    """
    function = FUNCTIONS[op]
    if function.result is Result.SECOND:
        condition, *choices = args
        assert not isinstance(condition, int | float | complex)
        yes, no = _with_literals(choices)
        if isinstance(condition, Const):
            return yes if condition.value else no
        return Call(op, (condition, yes, no), yes.dtype.compute_dtype)
    values = _with_literals(args)
    folded = _fold(op, values)
    return Call(op, values, function.result_type(values[0].dtype)) if folded is None else folded


def _with_literals(args: Sequence[Value | Number]) -> tuple[Value, ...]:
    """Return the arguments with literals for numbers. ``TypeError`` for a symbolic number."""
    dtype = next(arg.dtype for arg in args if isinstance(arg, Value))
    return tuple(arg if isinstance(arg, Value) else const(arg, dtype.compute_dtype) for arg in args)


def _fold(op: str, args: tuple[Value, ...]) -> Value | None:
    if op in ("logical_and", "logical_or"):
        for arg, other in (args, args[::-1]):
            if isinstance(arg, Const):
                neutral = bool(arg.value) == (op == "logical_and")
                return other if neutral else arg
        return None
    if op in ("mul", "truediv") and isinstance(args[1], Const) and args[1].value == 1:
        return args[0]
    if args[0].dtype is not DType.I64:
        return None
    exprs = [expr for expr in map(as_index, args) if expr is not None]
    if len(exprs) < len(args):
        return None
    if op in _INDEX_FUNCTIONS:
        return index_value(_INDEX_FUNCTIONS[op](*exprs))
    return _fold_comparison(op, exprs[0] - exprs[1]) if op in COMPARISONS else None


def _fold_comparison(op: str, difference: Expr) -> Value | None:
    """The result of a comparison with zero, if the sign is known at every point."""
    truth: bool | None = None
    if op in ("ge", "lt") and is_nonnegative(difference):
        truth = op == "ge"
    elif op in ("le", "gt") and is_nonnegative(-difference):
        truth = op == "le"
    elif op in ("eq", "ne") and difference.is_Integer:
        truth = (difference == 0) == (op == "eq")
    elif difference.is_Integer:
        truth = bool({"lt": difference < 0, "gt": difference > 0}.get(op, False))
    return None if truth is None else Const(truth, DType.BOOL)


def as_index(value: Value) -> Expr | None:
    """The integer expression of a value, or None."""
    if isinstance(value, IndexValue):
        return value.expr
    if isinstance(value, Const):
        return sympy.Integer(int(value.value.real))
    return None
