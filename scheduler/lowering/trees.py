"""Small constructors for value trees that insert casts where needed and fold constants.

Folding only removes index arithmetic and trivial masks; the C++ compiler does the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr, Guard, Relation, SymbolInfo
from scheduler.ir.guards import is_implied
from scheduler.ir.index.widening import CALLS
from scheduler.ir.pointwise import FUNCTIONS
from scheduler.ir.values import (
    COMPARISONS,
    Call,
    Cast,
    Const,
    IndexValue,
    Masked,
    Value,
    as_index,
    call,
    const,
    convert_literal,
    index_value,
    rebuild,
    upcast,
)
from scheduler.lowering.tensor import Tensor


def cast(value: Value, dtype: DType) -> Value:
    """An explicit conversion: it rounds to ``dtype``."""
    if value.dtype is dtype:
        return value
    if isinstance(value, Const) and dtype.compute_dtype is dtype:
        return convert_literal(value, dtype)
    if isinstance(value, IndexValue) and dtype in (DType.I64, DType.I32):
        return replace(value, dtype=dtype)
    return Cast(value, dtype)


def is_always_true(value: Value, symbols: Mapping[str, SymbolInfo]) -> bool:
    """Whether a boolean is provably true at all sizes within their ranges."""
    if isinstance(value, Const):
        return bool(value.value)
    if not isinstance(value, Call) or value.op not in COMPARISONS:
        return False
    left, right = map(as_index, value.args)
    if left is None or right is None:
        return False
    relation = Relation(left, FUNCTIONS[value.op].operator, right)
    return is_implied(Guard((relation,)), symbols)


def equal(a: Expr | int, b: Expr | int) -> Value:
    """``a == b`` of integer expressions."""
    return call("eq", index_value(a), index_value(b))


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
