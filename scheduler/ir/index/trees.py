"""The index expressions inside a tree of values: in normal form, and as offsets in memory."""

from __future__ import annotations

from dataclasses import replace

import sympy

from scheduler.ir.graph import Expr
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.index.simplify import simplify
from scheduler.ir.operations import Buffer, Store
from scheduler.ir.values import IndexValue, Load, Value, rebuild


def simplify_tree(value: Value, ranges: Ranges) -> Value:
    """The tree with every index expression in normal form."""

    def change(part: Value) -> Value | None:
        if isinstance(part, IndexValue):
            return replace(part, expr=simplify(part.expr, ranges))
        if isinstance(part, Load):
            inside = ranges_inside(part, ranges)
            index = tuple(i if i.is_Integer else simplify(i, inside) for i in part.index)
            indirect = tuple(
                replace(i, value=simplify_tree(i.value, ranges)) for i in part.indirect
            )
            return replace(part, index=index, indirect=indirect)
        return None

    return rebuild(value, change)


def ranges_inside(access: Load | Store, ranges: Ranges) -> Ranges:
    """The ranges within the index of an access: what it reads from memory may be any position
    along its axis, 0 included."""
    if isinstance(access, Store) or not access.indirect:
        return ranges
    return ranges.with_loops((i.symbol, i.size) for i in access.indirect)


def offset(access: Load | Store, buffer: Buffer, ranges: Ranges) -> Expr:
    """Where an access lies in its buffer's memory, in elements, in normal form."""
    terms = (i * s for i, s in zip(access.index, buffer.stride, strict=True))
    return simplify(sympy.Add(*terms), ranges_inside(access, ranges))
