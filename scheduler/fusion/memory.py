"""Buffer lifetimes, and reuse of memory by buffers that are not alive at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import sympy

from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.graph import Expr, SymbolInfo
from scheduler.ir.index.facts import is_nonnegative
from scheduler.ir.index.functions import evaluate, unbacked_sizes
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.index.simplify import simplify
from scheduler.ir.operations import Buffer, BufferKind, loop_spans, unshared_buffers

#: Maximum number of free allocations considered for a new buffer; keeps planning linear.
_MAX_CANDIDATES = 64


def with_frees(
    nodes: Sequence[SchedulerNode], buffers: Mapping[str, Buffer]
) -> tuple[SchedulerNode, ...]:
    """Return the nodes with ``frees``: the intermediate buffers whose last use each node is."""
    unshared = unshared_buffers(member for node in nodes for member in node.members)
    last: dict[str, int] = {}
    for position, node in enumerate(nodes):
        for name in (*node.writes, *node.reads):
            if buffers[name].kind is BufferKind.INTERMEDIATE and name not in unshared:
                last[name] = position
    for name, end in loop_carried_reads(nodes):
        if name in last:
            last[name] = max(last[name], end)
    frees: list[list[str]] = [[] for _ in nodes]
    for name, position in last.items():
        frees[position].append(name)
    return tuple(
        replace(node, frees=tuple(freed)) for node, freed in zip(nodes, frees, strict=True)
    )


def loop_carried_reads(nodes: Sequence[SchedulerNode]) -> Iterator[tuple[str, int]]:
    """Yield each buffer that a loop's body reads but does not write, with the position of the
    loop's end: the next step reads it again."""
    for begin, end in loop_spans([node.members[0] if node.members else None for node in nodes]):
        body = nodes[begin : end + 1]
        written = {name for node in body for name in node.writes}
        for name in dict.fromkeys(name for node in body for name in node.reads):
            if name not in written:
                yield name, end


def size_bytes(buffer: Buffer) -> Expr:
    """Return the size of a buffer in bytes, up to its last element, strides included."""
    extent = [(s - 1) * stride for s, stride in zip(buffer.size, buffer.stride, strict=True)]
    if any(s == 0 for s in buffer.size):
        return sympy.Integer(0)
    return simplify((sympy.Add(*extent) + 1) * buffer.dtype.itemsize)


def plan_memory(
    nodes: Sequence[SchedulerNode], buffers: Mapping[str, Buffer], symbols: Mapping[str, SymbolInfo]
) -> tuple[dict[str, str], dict[str, Expr]]:
    """Return ``storage`` and ``pools`` of a schedule.

    A buffer reuses an allocation whose last reader is an earlier node, if one of the two sizes is
    provably the larger at every binding; the allocation then has that size. Among these the nearest
    in size at the example's sizes is chosen. Buffers that loops rename or slice have no pool.
    """
    unshared = unshared_buffers(member for node in nodes for member in node.members)
    sizes = Ranges.from_symbols(symbols)
    hints = {name: info.hint for name, info in symbols.items()}
    storage: dict[str, str] = {}
    pools: dict[str, Expr] = {}
    free: list[str] = []
    for node in nodes:
        for name in node.writes:
            if buffers[name].kind is not BufferKind.INTERMEDIATE or name in unshared:
                continue
            size = size_bytes(buffers[name])
            # A data-dependent size is allocated once it is known, and not shared.
            candidates = [] if unbacked_sizes(size) else free[-_MAX_CANDIDATES:]
            comparable_pools = [p for p in candidates if _larger(size, pools[p], sizes) is not None]
            if not comparable_pools:
                chosen = f"pool{len(pools)}"
                pools[chosen] = size
            else:
                required = evaluate(size, hints)
                distances = [
                    abs(evaluate(pools[pool], hints) - required) for pool in comparable_pools
                ]
                chosen = comparable_pools[distances.index(min(distances))]
                free.remove(chosen)
                pools[chosen] = _larger(size, pools[chosen], sizes) or size
            storage[name] = chosen
        freed_pools = (storage[name] for name in node.frees if name in storage)
        free.extend(pool for pool in freed_pools if not unbacked_sizes(pools[pool]))
    return storage, pools


def _larger(a: Expr, b: Expr, sizes: Ranges) -> Expr | None:
    """Return the size that is provably never the smaller one, or None."""
    if a == b or is_nonnegative(a - b, sizes):
        return a
    return b if is_nonnegative(b - a, sizes) else None
