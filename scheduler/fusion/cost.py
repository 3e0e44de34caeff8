"""Profitability of a fusion: rules that reject legal fusions that would be slower.

A pointwise value is recomputed at every read. That adds no memory traffic if the reader then reads
no more bytes than the value has, and is cheap if it takes little arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sympy

from scheduler.fusion.group import Group
from scheduler.fusion.nodes import numel
from scheduler.ir.index.affine import affine_parts
from scheduler.ir.index.functions import FloorDiv, evaluate
from scheduler.ir.operations import (
    Attention,
    Axis,
    Buffer,
    Contraction,
    GroupKind,
    Operation,
    Scatter,
)
from scheduler.ir.pointwise import FUNCTIONS
from scheduler.ir.values import Call, Cast, Load, Value, children, loads, walk

#: Arithmetic (in additions) that may be repeated for each read.
_MAX_CHEAP_COST = 8
#: A more expensive value may be recomputed at this multiple of its points.
_MAX_REPEATS = 2
#: A read shared by this many neighbours, such as a quantized block's scale, hits a cache.
_MIN_BLOCK = 16
#: Fewer rows than this leave most of a GPU idle during a lot of pointwise work.
_MIN_ROWS = 16
_MAX_ELEMENTS_OF_FEW_ROWS = 1 << 16


def tree_extent(value: Value) -> tuple[int, int]:
    """Return the number of parts of a tree, shared parts counted at each use, and of levels."""
    child_extents = [tree_extent(child) for child in children(value)]
    size = 1 + sum(child_size for child_size, _ in child_extents)
    return size, 1 + max((child_depth for _, child_depth in child_extents), default=0)


def arithmetic_cost(value: Value) -> int:
    """Return the arithmetic cost of a tree, in additions."""
    return sum(FUNCTIONS[part.op].cost for part in walk(value) if isinstance(part, Call))


def is_view_like(op: Operation, readers: Sequence[Operation]) -> bool:
    """Whether every reader may compute ``op`` itself: a conversion of one element, or index
    arithmetic. False if a reader needs it in memory: an extern, or a template's operand."""
    (store,) = op.results
    value = store.value
    while isinstance(value, Cast):
        value = value.value
    reads = list(loads(value))
    if isinstance(value, Load):
        is_free = not value.indirect
    else:
        is_free = not reads and arithmetic_cost(value) <= _MAX_CHEAP_COST
    if (
        not is_free
        or not readers
        or any(reader.group_kind is GroupKind.EXTERN for reader in readers)
    ):
        return False
    return not any(store.buffer in _operands(reader) for reader in readers)


def _operands(op: Operation) -> set[str]:
    """Buffers that a template reads as its operands."""
    return {load.buffer for tree in op.matrix_operands for load in loads(tree)}


def rows_rejection(op: Operation, hints: Mapping[str, int]) -> str:
    """Return why a reduction should not compute pointwise work in its rows, or ""."""
    rows, steps = (evaluate(numel(axes), dict(hints)) for axes in op.nest)
    if rows < _MIN_ROWS and rows * steps > _MAX_ELEMENTS_OF_FEW_ROWS:
        return f"computing it in {rows} rows would leave most of the device idle"
    return ""


def transpose_rejection(op: Operation, group: Group, buffers: Mapping[str, Buffer]) -> str:
    """Return why a convolution should not store its results in another memory order, or "".

    Its tiles have adjacent channels. If channels are not adjacent in memory, it would store single
    elements, while a transpose kernel loads and stores whole vectors.
    """
    if group.kind is not GroupKind.CONVOLUTION:
        return ""
    template_results = (buffers[store.buffer] for store in group.members[0].results)
    copies = (buffers[store.buffer] for store in op.results)
    if not all(map(_has_adjacent_channels, template_results)) or all(
        map(_has_adjacent_channels, copies)
    ):
        return ""
    return "its channels are not adjacent in memory, but those of the tiles are"


def _has_adjacent_channels(buffer: Buffer) -> bool:
    """Whether channels (dimension 1) are adjacent in memory."""
    return len(buffer.size) > 2 and (buffer.size[1] == 1 or buffer.stride[1] == 1)


def inline_rejection(
    group: Group,
    buffer: str,
    reader: Group,
    buffers: Mapping[str, Buffer],
    hints: Mapping[str, int],
) -> str:
    """Return why ``buffer`` should not be inlined into ``reader``, or ""."""
    if reader.kind is GroupKind.EXTERN:
        return "its reader is computed by the reference, which reads it from memory"
    main = reader.members[0]
    work = sum(arithmetic_cost(store.value) for op in group.members for store in op.results)
    bytes_read = _bytes_read(group, buffers)
    if buffer in _operands(main) and _needs_operand_in_memory(main, group, buffers):
        return "its reader loads windows in vectors, once per tap, so it must be in memory"
    if isinstance(main, Contraction) and buffer in _operands(main):
        if work > _MAX_CHEAP_COST:
            return "every block of the template would recompute it"
        if bytes_read > buffers[buffer].dtype.itemsize:
            return "every block of the template would read more bytes"
        return ""
    if isinstance(main, Attention):
        shared_operands = [tree for tree in (main.k, main.v, main.mask) if tree is not None]
        if any(load.buffer == buffer for tree in shared_operands for load in loads(tree)):
            return "every block of rows would recompute it"
    read_count = _count_reads(buffer, reader, hints)
    points = evaluate(numel(group.outer), dict(hints))
    if read_count <= _MAX_REPEATS * points:
        return ""
    if work <= _MAX_CHEAP_COST and bytes_read <= buffers[buffer].dtype.itemsize:
        return ""
    return f"each of its elements would be computed {read_count / max(points, 1):.0f} times"


def _needs_operand_in_memory(main: Operation, group: Group, buffers: Mapping[str, Buffer]) -> bool:
    """Whether a template's operand must stay a tensor in memory.

    A convolution may read the source of a group that only moves data, unless the move makes the
    channels innermost.
    """
    if main.group_kind is not GroupKind.CONVOLUTION:
        return main.group_kind is GroupKind.DEPTHWISE
    for store in (store for member in group.members for store in member.results):
        written, load = buffers[store.buffer], store.value
        if not isinstance(load, Load) or load.indirect or load.dtype is not written.dtype:
            return True
        if len(written.size) > 2 and written.stride[1] == 1 and store.index[1].is_Symbol:
            steps = zip(load.index, buffers[load.buffer].stride, strict=True)
            offset = sympy.Add(*(i * step for i, step in steps))
            if affine_parts(offset, {store.index[1]}).step(store.index[1]) != 1:
                return True
    return False


def _count_reads(buffer: str, reader: Group, hints: Mapping[str, int]) -> int:
    """Return the number of reads of a buffer's elements in a group, repeated reads included."""
    total = 0
    for member in reader.members:
        has_separate_loops = isinstance(
            member, Scatter
        )  # sources and results have loops of their own
        stored_trees = [(reader.outer, store.value) for store in member.results]
        operand_trees = [(scope.axes, scope.value) for scope in member.operands]
        for axes, tree in (*operand_trees, *stored_trees):
            count = sum(load.buffer == buffer for load in loads(tree))
            points = axes if has_separate_loops else (*reader.outer, *reader.inner)
            total += count * evaluate(numel(points), dict(hints)) if count else 0
    return total


def _bytes_read(group: Group, buffers: Mapping[str, Buffer]) -> int:
    """Bytes read from memory per point; reads shared by all points of a loop hit a cache."""
    written = group.written()
    total = 0
    for member in group.members:
        for tree in member.trees:
            for load in dict.fromkeys(loads(tree)):
                if load.buffer not in written and _varies_at_each_point(load, group.outer):
                    total += buffers[load.buffer].dtype.itemsize
    return total


def _varies_at_each_point(load: Load, axes: tuple[Axis, ...]) -> bool:
    """Whether a read accesses a different element at (nearly) every point. A variable that only
    counts blocks changes the index too rarely."""
    symbols: set[sympy.Basic] = set()
    for index in load.index:
        blocks = {
            part: sympy.Integer(0)
            for part in index.atoms(FloorDiv)
            if part.args[1].is_Integer and part.args[1] >= _MIN_BLOCK
        }
        symbols |= index.xreplace(blocks).free_symbols
    return bool(load.indirect) or all(axis.var in symbols for axis in axes)
