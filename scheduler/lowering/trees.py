"""Small constructors for value trees that insert casts where needed and fold constants.

Folding only removes index arithmetic and trivial masks; the C++ compiler does the rest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr, Guard, Relation, SymbolInfo
from scheduler.ir.guards import is_implied
from scheduler.ir.index.facts import is_nonnegative
from scheduler.ir.index.widening import CALLS
from scheduler.ir.minifloat import round_to_minifloat
from scheduler.ir.pointwise import FUNCTIONS, Result
from scheduler.ir.values import Call, Cast, Const, IndexValue, Masked, Value, rebuild
from scheduler.lowering.tensor import Tensor

_INDEX_OPS = {"add", "sub", "mul", "neg"}
_FLIPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def const(value: int | float | complex | bool, dtype: DType) -> Const:
    """A literal in the compute type of ``dtype``."""
    held = dtype.compute_dtype
    if held is DType.BOOL:
        return Const(bool(value), held)
    if dtype.is_float8:
        value = float(round_to_minifloat(_real(value), dtype))
    if held.is_complex:
        return Const(complex(value), held)
    number = _real(value)
    return Const(float(number) if held.is_float else _wrapped(int(number), held), held)


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
        return _convert(value, dtype.compute_dtype)
    if isinstance(value, IndexValue) and dtype in (DType.I64, DType.I32):
        return replace(value, dtype=dtype)
    return Cast(value, dtype.compute_dtype)


def cast(value: Value, dtype: DType) -> Value:
    """An explicit conversion: it rounds to ``dtype``."""
    if value.dtype is dtype:
        return value
    if isinstance(value, Const) and dtype.compute_dtype is dtype:
        return _convert(value, dtype)
    if isinstance(value, IndexValue) and dtype in (DType.I64, DType.I32):
        return replace(value, dtype=dtype)
    return Cast(value, dtype)


def _real(number: int | float | complex) -> int | float:
    return number.real if isinstance(number, complex) else number


def _convert(value: Const, dtype: DType) -> Value:
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


def call(op: str, *args: Value) -> Value:
    """A call of a function of ``ir/pointwise.py``; all arguments must have one compute type."""
    function = FUNCTIONS[op]
    if function.result is Result.SECOND:
        condition, yes, no = args
        if isinstance(condition, Const):
            return yes if condition.value else no
        return Call(op, args, yes.dtype.compute_dtype)
    folded = _fold(op, args)
    if folded is not None:
        return folded
    return Call(op, args, function.result_type(args[0].dtype))


def _fold(op: str, args: tuple[Value, ...]) -> Value | None:
    if op in ("logical_and", "logical_or"):
        return _fold_logic(op, args)
    if op in ("mul", "truediv") and isinstance(args[1], Const) and args[1].value == 1:
        return args[0]
    if args[0].dtype is not DType.I64:
        return None
    exprs = [_expr(arg) for arg in args]
    known = [expr for expr in exprs if expr is not None]
    if len(known) < len(args):
        return None
    if op in _INDEX_OPS:
        return index_value(_arithmetic(op, known))
    if op in _FLIPPED:
        return _fold_comparison(op, known[0] - known[1])
    return None


def _fold_logic(op: str, args: tuple[Value, ...]) -> Value | None:
    for arg, other in (args, args[::-1]):
        if isinstance(arg, Const):
            neutral = bool(arg.value) == (op == "logical_and")
            return other if neutral else arg
    return None


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


def is_always_true(value: Value, symbols: Mapping[str, SymbolInfo]) -> bool:
    """Whether a boolean is provably true at all sizes within their ranges."""
    if isinstance(value, Const):
        return bool(value.value)
    if not isinstance(value, Call) or value.op not in _FLIPPED:
        return False
    left, right = map(_expr, value.args)
    if left is None or right is None:
        return False
    relation = Relation(left, FUNCTIONS[value.op].operator, right)
    return is_implied(Guard((relation,)), symbols)


def _expr(value: Value) -> Expr | None:
    """The integer expression of a value, or None."""
    if isinstance(value, IndexValue):
        return value.expr
    if isinstance(value, Const):
        return sympy.Integer(int(value.value.real))
    return None


def _arithmetic(op: str, args: list[Expr]) -> Expr:
    if op == "neg":
        return -args[0]
    a, b = args
    return {"add": a + b, "sub": a - b, "mul": a * b}[op]


def less_than(a: Expr, b: Expr) -> Value:
    """``a < b`` of integer expressions."""
    return call("lt", index_value(a), index_value(b))


def all_of(*conditions: Value) -> Value:
    """The conjunction of the conditions; true if there are none."""
    result: Value = Const(True, DType.BOOL)
    for condition in conditions:
        result = call("logical_and", result, condition)
    return result


def masked_value(condition: Value, value: Value, other: Value) -> Value:
    """``value`` where ``condition`` holds, otherwise ``other``; ``value`` is read only there."""
    if isinstance(condition, Const):
        return value if condition.value else other
    other = upcast(other, value.dtype)
    if value == other:  # the parts of an arange concatenated again
        return value
    return Masked(condition, value, other)


def scale_value(value: Value, factor: int | float | complex | Expr | Tensor, dtype: DType) -> Value:
    """``factor * value``; the value itself for a factor of 1. A factor tensor has no dimensions."""
    if factor == 1:
        return value
    if isinstance(factor, Tensor):
        return call("mul", value, upcast(factor.at(()), dtype))
    if isinstance(factor, sympy.Expr):
        return call("mul", value, upcast(index_value(factor), dtype))
    return call("mul", value, const(factor, dtype))


def is_zero_factor(factor: object, dtype: DType) -> bool:
    """Whether a factor is 0 in this type; integer types truncate it."""
    return isinstance(factor, int | float | complex) and const(factor, dtype).value == 0


def expr_tree(expr: Expr, values: dict[sympy.Symbol, Value]) -> Value:
    """An integer expression as a tree of calls, with some of its symbols replaced by trees."""
    if not expr.free_symbols.intersection(values):
        return index_value(expr)
    if expr.is_Symbol:
        return upcast(values[expr], DType.I64)
    args = [expr_tree(arg, values) for arg in expr.args]
    if isinstance(expr, sympy.Pow):
        args = [args[0]] * int(expr.args[1])
        name = "mul"
    else:
        name = CALLS[type(expr)]
    result = args[0]
    for arg in args[1:]:
        result = call(name, result, arg)
    return result


def tag_node(value: Value, node: str) -> Value:
    """Tag calls and casts without a graph node with this node."""

    def name(part: Value) -> Value | None:
        if isinstance(part, Call) and not part.node:
            return replace(part, node=node, args=tuple(tag_node(arg, node) for arg in part.args))
        if isinstance(part, Cast) and not part.node:
            return replace(part, value=tag_node(part.value, node), node=node)
        return part if isinstance(part, Call | Cast) else None

    return rebuild(value, name)
