"""The index expressions in a value tree: normal form, and memory offsets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.index.simplify import simplify
from scheduler.ir.operations import Buffer, Store
from scheduler.ir.values import Call, Cast, Const, IndexValue, Load, Value, rebuild, walk


def simplify_tree(value: Value, ranges: Ranges) -> Value:
    """Return the tree with every index expression in normal form."""

    def change(part: Value) -> Value | None:
        if isinstance(part, IndexValue):
            return replace(part, expr=simplify(part.expr, ranges))
        if isinstance(part, Load):
            inside = access_ranges(part, ranges)
            index = tuple(i if i.is_Integer else simplify(i, inside) for i in part.index)
            indirect = tuple(
                replace(i, value=simplify_tree(i.value, ranges)) for i in part.indirect
            )
            return replace(part, index=index, indirect=indirect)
        return None

    return rebuild(value, change)


def as_index_expr(value: Value) -> Expr | None:
    """Convert an integer tree to an index expression; None if that is not possible."""
    if value.dtype not in (DType.I32, DType.I64):
        return None
    if isinstance(value, IndexValue):
        return value.expr
    if isinstance(value, Const):
        return sympy.Integer(int(value.value.real))
    if isinstance(value, Cast):
        return as_index_expr(value.value)
    if isinstance(value, Call) and value.op in ("add", "sub"):
        left, right = (as_index_expr(part) for part in value.args)
        if left is None or right is None:
            return None
        return left + right if value.op == "add" else left - right
    return None


def index_exprs(value: Value) -> Iterator[Expr]:
    """Yield every index expression in a tree."""
    for part in walk(value):
        if isinstance(part, Load):
            yield from part.index
        elif isinstance(part, IndexValue):
            yield part.expr


def access_ranges(access: Load | Store, ranges: Ranges) -> Ranges:
    """Return the ranges for the index of an access: an indirect index may be any position along
    its axis, including 0."""
    if isinstance(access, Store) or not access.indirect:
        return ranges
    return ranges.with_loops((i.symbol, i.size) for i in access.indirect)


def access_offset(access: Load | Store, buffer: Buffer, ranges: Ranges) -> Expr:
    """Return the offset of an access in its buffer, in elements, in normal form."""
    return simplify(flat_offset(access.index, buffer.stride), access_ranges(access, ranges))


def flat_offset(index: tuple[Expr, ...], stride: tuple[Expr, ...]) -> Expr:
    """Return the offset of an index with one expression per dimension, not simplified."""
    return sympy.Add(*(i * s for i, s in zip(index, stride, strict=True)))
