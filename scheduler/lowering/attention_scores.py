"""Trace scores that a model writes out back to the product they come from, collecting scale, soft
cap and mask."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import sympy

from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr
from scheduler.ir.index.facts import is_less, is_nonnegative
from scheduler.ir.index.inverse import reindexing_at
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.index.substitute import substitute
from scheduler.ir.index.trees import simplify_tree
from scheduler.ir.operations import (
    Axis,
    Contraction,
    GroupKind,
    Lowered,
    Operation,
    Pointwise,
    Store,
)
from scheduler.ir.values import Accumulator, Call, Cast, Load, Masked, Value, rebuild, upcast, walk
from scheduler.lowering import attention_masks as masks
from scheduler.lowering import trees

#: Maximum number of steps followed. Attention needs fewer, and the search must be bounded.
_MAX_STEPS = 48
#: Maximum calls and loads of a mask that is recomputed for each score instead of being read.
_MAX_CALLS = 16
_ZERO = sympy.Integer(0)

Places: TypeAlias = Mapping[sympy.Symbol, Expr]


class Sources:
    """The operations of a lowered graph by the buffers they write, as seen from the loops
    (``ranges``) of a reader."""

    def __init__(self, lowered: Lowered) -> None:
        self.buffers = lowered.buffers
        self._writers = {name: op for op in lowered.operations for name in op.writes}
        self.sizes = Ranges.from_symbols(lowered.graph.symbols)

    def writer(self, load: Load) -> Operation | None:
        """The operation that wrote the loaded buffer; None if the load is indirect."""
        return None if load.indirect else self._writers.get(load.buffer)

    def ranges(self, operation: Operation) -> Ranges:
        """The ranges of all loops of an operation."""
        return self.sizes.over(operation.loops)

    def places(
        self, store: Store, axes: tuple[Axis, ...], load: Load, reader_ranges: Ranges
    ) -> Places | None:
        """The values of the loops over ``axes`` at which ``store`` wrote the loaded element, in
        terms of the reader's loops; None if they cannot be determined."""
        single_step_values = {axis.var: _ZERO for axis in axes if axis.size == 1}
        long_axes = tuple(axis for axis in axes if axis.size != 1)
        index = tuple(expr.xreplace(single_step_values) for expr in store.index)
        size = self.buffers[load.buffer].size
        reindexing = reindexing_at(index, size, long_axes, load.index, reader_ranges)
        return None if reindexing is None else {**single_step_values, **reindexing}

    def stored(self, operation: Pointwise, load: Load, reader_ranges: Ranges) -> Value | None:
        """The loaded element, as the tree that was stored."""
        positions = self.places(operation.store, operation.axes, load, reader_ranges)
        if positions is None:
            return None
        return simplify_tree(substitute(operation.store.value, positions), reader_ranges)

    def from_indices(self, value: Value, ranges: Ranges) -> Value | None:
        """Replace loads by the stored trees until none is left; None if that does not terminate
        soon."""
        for _ in range(_MAX_CALLS):
            tree_parts = list(walk(value))
            reads = {part for part in tree_parts if isinstance(part, Load)}
            if not reads:
                return value
            if sum(isinstance(part, Call | Load) for part in tree_parts) > _MAX_CALLS:
                return None
            stored_trees: dict[Load, Value] = {}
            for load in reads:
                writer = self.writer(load)
                stored = (
                    self.stored(writer, load, ranges) if isinstance(writer, Pointwise) else None
                )
                if stored is None:
                    return None
                stored_trees[load] = trees.cast(stored, load.dtype)

            def stored_tree(
                part: Value, stored_trees: dict[Load, Value] = stored_trees
            ) -> Value | None:
                return stored_trees.get(part) if isinstance(part, Load) else None

            value = rebuild(value, stored_tree)
        return None


@dataclass(frozen=True)
class Scores:
    """``outer * tanh(inner * product)`` (if ``capped``) or ``inner * product``, followed by
    ``steps``.

    ``places`` maps the product's loops to the reader's. ``through`` are the operations from the
    product to the reader, the product first.
    """

    product: Contraction
    places: Places
    through: tuple[Operation, ...]
    inner: float = 1.0
    outer: float = 1.0
    capped: bool = False
    steps: masks.Steps = ()

    @property
    def cap(self) -> float | None:
        """The soft cap."""
        return abs(self.outer) if self.capped else None

    @property
    def scale(self) -> float:
        """The factor of products before the soft cap."""
        return self.inner * self.outer

    def rounded_to(self, dtype: DType) -> Scores:
        """These scores stored in that type. Only a hiding number may round to infinity; other
        roundings are ignored."""
        steps = (
            step.rounded_to(dtype) if isinstance(step, masks.Hidden) else step
            for step in self.steps
        )
        return replace(self, steps=tuple(steps)) if self.steps else self

    def times(self, factor: float) -> Scores | None:
        """These scores times a number."""
        if self.steps or factor == 0 or not math.isfinite(factor):
            return None
        if self.capped:
            return replace(self, outer=self.outer * factor)
        return replace(self, inner=self.inner * factor)

    def over(self, divisor: float) -> Scores | None:
        """These scores divided by a number."""
        if self.steps or divisor == 0 or not math.isfinite(divisor):
            return None
        if self.capped:
            return replace(self, outer=self.outer / divisor)
        return replace(self, inner=self.inner / divisor)


class ScoreReader:
    """Reads scores as trees over the loops (``ranges``) of the operation that uses their
    softmax."""

    def __init__(self, sources: Sources, ranges: Ranges) -> None:
        self._sources = sources
        self._ranges = ranges
        self._steps_left = _MAX_STEPS

    def read(self, value: Value, product: Scores | None = None) -> Scores | None:
        """Match a tree as scores. ``product`` is what the accumulator in the tree stands for."""
        self._steps_left -= 1
        if self._steps_left < 0:
            return None
        if isinstance(value, Accumulator):
            return product
        if isinstance(value, Cast):
            is_elided = masks.is_elided_cast(value.value.dtype, value.dtype)
            scores = self.read(value.value, product) if is_elided else None
            return scores and scores.rounded_to(value.dtype)
        if isinstance(value, Load):
            scores = None if product or value.dtype.is_float8 else self._loaded(value)
            return scores and scores.rounded_to(value.dtype)
        if isinstance(value, Masked) or (isinstance(value, Call) and value.op == "where"):
            return self._hidden(value, product)
        if not isinstance(value, Call):
            return None
        rule = _RULES.get(value.op)
        return None if rule is None else rule(self, value.args, product)

    def _loaded(self, load: Load) -> Scores | None:
        writer = self._sources.writer(load)
        size = self._sources.buffers[load.buffer].size
        if not all(
            is_nonnegative(i, self._ranges) and is_less(i, n, self._ranges)
            for i, n in zip(load.index, size, strict=True)
        ):
            return None  # under a mask, some indices are outside the buffer
        if isinstance(writer, Pointwise):
            stored = self._sources.stored(writer, load, self._ranges)
            scores = None if stored is None else self.read(stored)
            return scores and replace(scores, through=(*scores.through, writer))
        if not isinstance(writer, Contraction) or writer.group_kind is not GroupKind.GEMM:
            return None
        if len(writer.stores) != 1:
            return None
        (store,) = writer.stores
        axis_map = self._sources.places(store, writer.points, load, self._ranges)
        if axis_map is None:
            return None
        stored = simplify_tree(substitute(store.value, axis_map), self._ranges)
        return self.read(stored, Scores(writer, axis_map, (writer,)))

    def read_product(self, args: tuple[Value, ...], product: Scores | None) -> Scores | None:
        """Scores times a literal, on either side."""
        for value, other in (args, args[::-1]):
            factor = masks.literal_value(other)
            if factor is not None:
                scores = self.read(value, product)
                return scores and scores.times(factor)
        return None

    def read_quotient(self, args: tuple[Value, ...], product: Scores | None) -> Scores | None:
        """Scores divided by a literal."""
        divisor = masks.literal_value(args[1])
        scores = None if divisor is None else self.read(args[0], product)
        return scores.over(divisor) if scores and divisor is not None else None

    def read_negation(self, args: tuple[Value, ...], product: Scores | None) -> Scores | None:
        """Negated scores."""
        scores = self.read(args[0], product)
        return scores and scores.times(-1.0)

    def read_cap(self, args: tuple[Value, ...], product: Scores | None) -> Scores | None:
        """tanh of scores."""
        scores = self.read(args[0], product)
        if scores is None or scores.capped or scores.steps:
            return None
        return replace(scores, capped=True)

    def read_sum(self, args: tuple[Value, ...], product: Scores | None) -> Scores | None:
        """Scores plus a mask, on either side."""
        for value, other in (args, args[::-1]):
            scores = self.read(value, product)
            if scores is not None:
                return self._with_added(scores, other)
        return None

    def read_difference(self, args: tuple[Value, ...], product: Scores | None) -> Scores | None:
        """Scores minus a mask."""
        scores = self.read(args[0], product)
        if scores is None:
            return None
        return self._with_added(scores, -args[1])

    def _with_added(self, scores: Scores, value: Value) -> Scores | None:
        compute_dtype = scores.product.a.dtype.compute_dtype
        value = self._from_indices(value)
        hidden_and_value = masks.match_hidden(value)
        step: masks.Hidden | Value
        if hidden_and_value is not None and masks.literal_value(hidden_and_value[1]) == 0:
            step = replace(hidden_and_value[0], added=True)
        else:
            if value.dtype is DType.F64 and compute_dtype is not DType.F64:
                return None  # the least f64 is minus infinity there
            step = masks.bound_mask(upcast(value, compute_dtype))
        return replace(scores, steps=(*scores.steps, step))

    def _hidden(self, value: Value, product: Scores | None) -> Scores | None:
        """Scores hidden by a condition and a literal."""
        hidden_and_value = masks.match_hidden(value)
        if hidden_and_value is None:
            return None
        hidden, visible = hidden_and_value
        scores = self.read(visible, product)
        if scores is None:
            return None
        hidden = replace(hidden, seen=self._from_indices(hidden.seen))
        return replace(scores, steps=(*scores.steps, hidden))

    def _from_indices(self, value: Value) -> Value:
        """A mask as a tree without loads, if it is computed from indices in few steps."""
        tree = self._sources.from_indices(value, self._ranges)
        return value if tree is None else tree


_RULES: Mapping[str, Callable[[ScoreReader, tuple[Value, ...], Scores | None], Scores | None]] = {
    "mul": ScoreReader.read_product,
    "truediv": ScoreReader.read_quotient,
    "neg": ScoreReader.read_negation,
    "tanh": ScoreReader.read_cap,
    "add": ScoreReader.read_sum,
    "sub": ScoreReader.read_difference,
}
