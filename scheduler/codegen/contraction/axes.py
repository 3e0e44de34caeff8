"""The axes that a contraction's kernel runs over: the same product, in the form that reads well.

Lowering merges neighbouring axes where it can; if an operand's memory is not contiguous across
them, its index divides the merged variable. Here such a variable becomes several axes again, so
that every address is a sum of steps and contiguous runs can be read with wide loads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import sympy

from scheduler.codegen.contraction.indices import IndexGroup, address
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv, Mod, evaluate, variable
from scheduler.ir.index.ranges import loop_ranges
from scheduler.ir.index.simplify import simplify
from scheduler.ir.index.substitute import substitute, substitute_expr
from scheduler.ir.index.trees import index_exprs, simplify_tree
from scheduler.ir.operations import Axis, Buffer, Contraction, Store
from scheduler.ir.values import Value, loads

_MAX_SPLITS = 8


def split_axes(members: tuple[Contraction, ...]) -> tuple[Contraction, ...]:
    """Return the contractions with every axis split whose variable an index divides by a factor of
    its size. Members share the variables of batch, m and k, so all of them are split alike."""
    for number in range(_MAX_SPLITS):
        found = next(_find_splits(members), None)
        if found is None:
            break
        axis, inner = found
        members = tuple(_split_axis(member, axis, inner, number) for member in members)
    return members


def _find_splits(members: tuple[Contraction, ...]) -> Iterator[tuple[Axis, Expr]]:
    """Yield axes with the size of the inner part."""
    axes = {
        axis.var: axis
        for member in members
        for group in (member.batch, member.m, member.n, member.k)
        for axis in group
    }
    for member in members:
        for expr in _indices(member):
            for part in expr.atoms(FloorDiv, Mod):
                variable, divisor = part.args
                axis = axes.get(variable)
                if axis is None or not divisor.free_symbols.isdisjoint(axes):
                    continue
                outer = simplify(FloorDiv(axis.size, divisor))
                if divisor != axis.size and simplify(outer * divisor - axis.size) == 0:
                    yield axis, divisor


def _indices(member: Contraction) -> Iterator[Expr]:
    for store in member.stores:
        yield from store.index
    for tree in member.trees:
        yield from index_exprs(tree)


def _split_axis(member: Contraction, axis: Axis, inner: Expr, number: int) -> Contraction:
    high = Axis(variable("outer", number), simplify(FloorDiv(axis.size, inner)))
    low = Axis(variable("inner", number), inner)
    reindexing = {axis.var: high.var * inner + low.var}

    def axes(group: tuple[Axis, ...]) -> tuple[Axis, ...]:
        return tuple(new for old in group for new in ((high, low) if old == axis else (old,)))

    batch, m, n, k = (axes(group) for group in (member.batch, member.m, member.n, member.k))
    ranges = loop_ranges(batch, m, n, k)

    def tree(value: Value) -> Value:
        return simplify_tree(substitute(value, reindexing), ranges)

    def store(old: Store) -> Store:
        index = tuple(simplify(substitute_expr(i, reindexing), ranges) for i in old.index)
        return replace(old, index=index, value=tree(old.value))

    return replace(
        member,
        batch=batch,
        m=m,
        n=n,
        k=k,
        a=tree(member.a),
        b=tree(member.b),
        stores=tuple(store(old) for old in member.stores),
    )


def make_columns_contiguous(contraction: Contraction, buffers: Mapping[str, Buffer]) -> Contraction:
    """Return the contraction with rows and columns exchanged if results are contiguous along m.

    Neighbouring lanes hold neighbouring columns, and should write neighbouring memory.
    """
    store = contraction.stores[0]
    ranges = loop_ranges(contraction.batch, contraction.m, contraction.n)
    form = address(store, buffers[store.buffer], ranges)
    m = IndexGroup("m", contraction.m).innermost
    n = IndexGroup("n", contraction.n).innermost
    if form is None or m is None or form.at(m.var) != 1 or (n and form.at(n.var) == 1):
        return contraction
    return replace(
        contraction,
        m=contraction.n,
        n=contraction.m,
        a=contraction.b,
        b=contraction.a,
    )


def order_window_by_stride(
    contraction: Contraction, buffers: Mapping[str, Buffer], hints: dict[str, int]
) -> Contraction:
    """Return the contraction with its k axes in the memory order of the input's window, so that
    neighbouring k are contiguous there (channels last: the channel runs fastest)."""
    load = next(loads(contraction.a), None)
    if load is None:
        return contraction
    ranges = loop_ranges(contraction.batch, contraction.m, contraction.k)
    form = address(load, buffers[load.buffer], ranges)
    if form is None:
        return contraction
    steps: dict[sympy.Symbol, int] = {
        axis.var: abs(evaluate(form.at(axis.var), hints)) for axis in contraction.k
    }

    def step(axis: Axis) -> int:
        return steps[axis.var]

    return replace(contraction, k=tuple(sorted(contraction.k, key=step, reverse=True)))
