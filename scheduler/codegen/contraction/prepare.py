"""The contractions of a scheduled node, in the form that suits a kernel in any language.

Lowering merges neighbouring axes where it can; if an operand's memory is not contiguous across
them, its index divides the merged variable. Here such a variable becomes several axes again, so
that every address is a sum of steps and contiguous runs can be read with wide loads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from scheduler.codegen.contraction.indices import IndexGroup, address
from scheduler.fusion.nodes import SchedulerNode
from scheduler.fusion.reindex import reindex_store, reindex_value
from scheduler.ir.bindings import hint_bindings
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import FloorDiv, Mod, evaluate, variable
from scheduler.ir.index.ranges import loop_ranges
from scheduler.ir.index.simplify import simplify
from scheduler.ir.index.trees import index_exprs
from scheduler.ir.operations import Axis, Buffer, Contraction, Lowered
from scheduler.ir.values import Cast, loads

_MAX_SPLITS = 8
# f16 represents every number of these formats, none of them as a subnormal, which CDNA 2 matrix
# instructions flush to 0; bf16 represents every number of all 8-bit formats.
_DTYPES_WITHIN_F16 = (DType.F8E4M3FN, DType.F8E4M3FNUZ)


def gemm_contractions(node: SchedulerNode, lowered: Lowered) -> tuple[Contraction, ...]:
    """Return the contractions of a matrix product. Raises ``TypeError`` if a member is not a
    contraction."""
    return _make_columns_contiguous(_split_members(node), lowered.buffers)


def convolution_contractions(node: SchedulerNode, lowered: Lowered) -> tuple[Contraction, ...]:
    """Return the contractions of a convolution: k in the order of the input's memory. Raises as
    ``gemm_contractions`` does."""
    hints = hint_bindings(lowered.graph.symbols)
    ordered = tuple(
        _order_window_by_stride(member, lowered.buffers, hints) for member in _split_members(node)
    )
    return _make_columns_contiguous(ordered, lowered.buffers)


def _split_members(node: SchedulerNode) -> tuple[Contraction, ...]:
    """Return the contractions with every axis split whose variable an index divides by a factor of
    its size. Members share the variables of batch, m and k, so all of them are split alike."""
    members = node.contractions
    if len(members) != len(node.members):
        raise TypeError(f"{node.name} has members that are not contractions")
    for number in range(_MAX_SPLITS):
        split = next(_splits(members), None)
        if split is None:
            break
        members = tuple(_split_axis(member, *split, number) for member in members)
    return members


def _splits(members: tuple[Contraction, ...]) -> Iterator[tuple[Axis, Expr]]:
    """Yield axes with the size of the inner part."""
    axes = {axis.var: axis for member in members for axis in member.loops}
    for member in members:
        indices = [index for store in member.stores for index in store.index]
        indices += [index for tree in member.trees for index in index_exprs(tree)]
        for division in (atom for index in indices for atom in index.atoms(FloorDiv, Mod)):
            divided, divisor = division.args
            axis = axes.get(divided)
            if axis is None or not divisor.free_symbols.isdisjoint(axes):
                continue
            outer_size = simplify(FloorDiv(axis.size, divisor))
            if divisor != axis.size and simplify(outer_size * divisor - axis.size) == 0:
                yield axis, divisor


def _split_axis(member: Contraction, axis: Axis, inner_size: Expr, number: int) -> Contraction:
    outer = Axis(variable("outer", number), simplify(FloorDiv(axis.size, inner_size)))
    inner = Axis(variable("inner", number), inner_size)
    reindexing = {axis.var: outer.var * inner_size + inner.var}
    batch, m, n, k = (
        tuple(new for old in group for new in ((outer, inner) if old == axis else (old,)))
        for group in (member.batch, member.m, member.n, member.k)
    )
    ranges = loop_ranges(batch, m, n, k)
    a, b = (reindex_value(tree, reindexing, ranges) for tree in (member.a, member.b))
    stores = tuple(reindex_store(store, reindexing, ranges) for store in member.stores)
    return replace(member, batch=batch, m=m, n=n, k=k, a=a, b=b, stores=stores)


def _make_columns_contiguous(
    members: tuple[Contraction, ...], buffers: Mapping[str, Buffer]
) -> tuple[Contraction, ...]:
    """Exchange rows and columns of a single contraction whose results are contiguous along m;
    several share ``a`` and its axes.

    Neighbouring lanes hold neighbouring columns, and should write neighbouring memory.
    """
    contraction, *others = members
    store = contraction.stores[0]
    form = address(store, buffers[store.buffer], loop_ranges(contraction.points))
    m = IndexGroup("m", contraction.m).innermost
    n = IndexGroup("n", contraction.n).innermost
    if others or form is None or m is None or form.at(m.var) != 1 or (n and form.at(n.var) == 1):
        return members
    m_axes, n_axes, a, b = contraction.n, contraction.m, contraction.b, contraction.a
    return (replace(contraction, m=m_axes, n=n_axes, a=a, b=b),)


def _order_window_by_stride(
    contraction: Contraction, buffers: Mapping[str, Buffer], hints: Mapping[str, int]
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
    strides = {axis: abs(evaluate(form.at(axis.var), hints)) for axis in contraction.k}
    return replace(
        contraction, k=tuple(sorted(contraction.k, key=strides.__getitem__, reverse=True))
    )


def upcast_operands(members: tuple[Contraction, ...]) -> tuple[Contraction, ...]:
    """Convert operands of 8-bit floats to a wider type, for kernels that multiply wider types. It
    represents every number of the format, so the products are the same."""
    dtype = members[0].a.dtype
    if not dtype.is_float8:
        return members
    wider = DType.F16 if dtype in _DTYPES_WITHIN_F16 else DType.BF16
    return tuple(
        replace(member, a=Cast(member.a, wider), b=Cast(member.b, wider)) for member in members
    )
