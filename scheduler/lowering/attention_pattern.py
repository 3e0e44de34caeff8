"""Fuse attention that a model writes out as separate ops into one operation.

torch.export turns ``softmax(q @ k.T * scale + mask) @ v``, with or without a soft cap, into two
products with a softmax between them. If nothing else reads the intermediate values, they become one
``Attention``, and no scores are stored in memory. A row whose scores are all minus infinity gives
NaN here, unlike in torch's own attention (``safe``). Roundings to 16 bits between the steps are
omitted, as in fusion: if a model adds the least f16 to every score of a row, the scores still
differ in f32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from scheduler.ir.dtypes import DType
from scheduler.ir.index.facts import is_nonnegative
from scheduler.ir.index.functions import variable
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.index.simplify import simplify
from scheduler.ir.index.substitute import substitute, substitute_expr
from scheduler.ir.index.trees import index_exprs, simplify_tree
from scheduler.ir.operations import (
    Attention,
    Axis,
    BufferKind,
    Contraction,
    GroupKind,
    Lowered,
    Operation,
    live_operations,
)
from scheduler.ir.values import Accumulator, Load, Value, walk
from scheduler.lowering import attention
from scheduler.lowering.attention_masks import Mask, combine_mask
from scheduler.lowering.attention_scores import ScoreReader, Scores, Sources
from scheduler.lowering.softmax_pattern import match_softmax

_ATTENTION_DTYPES = (DType.F16, DType.BF16, DType.F32, DType.F64)


def with_attention(lowered: Lowered) -> Lowered:
    """Return the graph with attention patterns replaced by ``Attention`` operations."""
    sources = Sources(lowered)
    uses = _Uses(lowered)
    fused: dict[str, Attention] = {}
    for operation in lowered.operations:
        if isinstance(operation, Contraction) and operation.group_kind is GroupKind.GEMM:
            pattern = _Match.match(operation, sources)
            attention_operation = None if pattern is None else pattern.operation(uses)
            if attention_operation is not None:
                fused[operation.name] = attention_operation
    if not fused:
        return lowered
    operations = [fused.get(operation.name, operation) for operation in lowered.operations]
    live = live_operations(operations, lowered.results)
    used = {name for operation in live for name in (*operation.reads, *operation.writes)}
    results = {
        store.buffer for fused_operation in fused.values() for store in fused_operation.stores
    }
    buffers = {
        name: buffer
        for name, buffer in lowered.buffers.items()
        if buffer.kind is not BufferKind.INTERMEDIATE or name in used
    }
    # An attention that a later one contains is not live.
    for name in (
        results & buffers.keys()
    ):  # readers concatenate the heads; an output of the model keeps its strides
        if buffers[name].kind is BufferKind.INTERMEDIATE:
            stride = attention.rows_first_strides(buffers[name].size) or buffers[name].stride
            buffers[name] = replace(buffers[name], stride=stride)
    return replace(lowered, operations=tuple(live), buffers=buffers)


class _Uses:
    """The readers of each buffer, and which operations lie between the same loop marks."""

    def __init__(self, lowered: Lowered) -> None:
        self.hints = {name: info.hint for name, info in lowered.graph.symbols.items()}
        self._outputs = set(lowered.results)
        self._readers: dict[str, set[str]] = {}
        self._parts: dict[str, int] = {}
        self._order: dict[str, int] = {}
        section = 0
        for position, operation in enumerate(lowered.operations):
            section += operation.group_kind is GroupKind.LOOP
            self._parts[operation.name], self._order[operation.name] = section, position
            for name in operation.reads:
                self._readers.setdefault(name, set()).add(operation.name)

    def is_isolated(self, operations: Sequence[Operation]) -> bool:
        """Whether all writes except the last operation's are read only by these operations, and all
        lie between the same loop marks."""
        names = {operation.name for operation in operations}
        written = {name for operation in operations[:-1] for name in operation.writes}
        return (
            not written & self._outputs
            and all(self._readers.get(name, set()) <= names for name in written)
            and len({self._parts[name] for name in names}) == 1
        )

    def program_order(self, operations: Sequence[Operation]) -> list[Operation]:
        """Sort the operations in execution order."""
        return sorted(operations, key=lambda operation: self._order[operation.name])


@dataclass(frozen=True)
class _Match:
    """A product whose rows are averaged with a softmax of ``scores``; ``through`` are the
    operations that compute the softmax."""

    last: Contraction
    sizes: Ranges
    ranges: Ranges
    row: Axis
    column: Axis
    scores: Scores
    through: tuple[Operation, ...]
    safe: bool

    @staticmethod
    def match(last: Contraction, sources: Sources) -> _Match | None:
        """Match attention that ends with this product; None if there is none."""
        if len(last.k) != 1 or len(last.n) != 1 or len(last.stores) != 1:
            return None
        ranges = sources.ranges(last)
        softmax = match_softmax(last.a, last.k[0], ranges, sources)
        if softmax is None:
            return None
        scores = ScoreReader(sources, ranges).read(softmax.scores)
        if scores is None:
            return None
        return _Match(
            last,
            sources.sizes,
            ranges,
            last.m[-1],
            last.k[0],
            scores,
            softmax.through,
            softmax.safe,
        )

    def operation(self, uses: _Uses) -> Attention | None:
        """The match as one operation; None if that would not be equivalent or has no kernel."""
        last, first = self.last, self.scores.product
        operations = [*self.scores.through, *self.through, last]
        if len(first.k) != 1 or not uses.is_isolated(operations):
            return None
        if any(size == 0 for size in (self.row.size, first.k[0].size, last.n[0].size)):
            return None
        if not is_nonnegative(self.column.size - 1, self.sizes):
            return None
        depth, value_depth = Axis(variable("d", 0), first.k[0].size), last.n[0]
        axis_map = {**self.scores.places, first.k[0].var: depth.var}
        ranges = self.ranges.over((depth,))
        left, right = (simplify_tree(substitute(x, axis_map), ranges) for x in (first.a, first.b))
        q, k = (right, left) if _reads(left, self.column) else (left, right)
        if _reads(q, self.column) or _reads(k, self.row):
            return None
        mask = combine_mask(
            self.scores.steps, self.row, self.column, self.ranges, q.dtype.compute_dtype
        )
        written = {name for operation in operations[:-1] for name in operation.writes}
        if mask is None:
            return None
        if mask.value is not None and any(
            isinstance(part, Accumulator) or (isinstance(part, Load) and part.buffer in written)
            for part in walk(mask.value)
        ):
            return None  # the mask reads what the attention itself computes
        v = last.b
        if not (q.dtype is k.dtype is v.dtype and q.dtype in _ATTENTION_DTYPES):
            return None
        points = tuple(axis.size for axis in (*last.batch, *last.m, self.column))
        depths = (depth.size, value_depth.size)
        if not attention.is_one_kernel(q.dtype, points, depths, uses.hints):
            return None
        result = self._attention(q, k, v, depth, mask)
        nodes = (node for operation in uses.program_order(operations) for node in operation.nodes)
        return result.with_nodes(tuple(dict.fromkeys(nodes)))

    def _attention(self, q: Value, k: Value, v: Value, depth: Axis, mask: Mask) -> Attention:
        """Build the operation, with axes named as in the lowering of torch's own attention."""
        last = self.last
        outer = (*last.batch, *last.m[:-1])
        value_depth = last.n[0]
        names = {axis.var: variable("b", position) for position, axis in enumerate(outer)}
        names |= {self.row.var: variable("q", 0), self.column.var: variable("c", 0)}
        names[value_depth.var] = variable("e", 0)
        axes = [replace(a, var=names[a.var]) for a in (*outer, self.row, self.column, value_depth)]
        ranges = self.sizes.over((*axes, depth))

        def tree(value: Value) -> Value:
            return simplify_tree(substitute(value, names), ranges)

        (store,) = last.stores
        index = (simplify(substitute_expr(expr, names), ranges) for expr in store.index)
        return Attention(
            last.name,
            tuple(axes[:-3]),
            axes[-3],
            axes[-2],
            depth,
            axes[-1],
            tree(q),
            tree(k),
            tree(v),
            None if mask.value is None else tree(mask.value),
            mask.causal,
            self.scores.scale,
            (replace(store, index=tuple(index), value=tree(store.value)),),
            last.nodes,
            self.scores.cap,
            self.safe or mask.sees,
        )


def _reads(value: Value, axis: Axis) -> bool:
    return any(axis.var in expr.free_symbols for expr in index_exprs(value))
