"""The loop nest of a group of operations, in the form that the loop templates print.

Members of a group may name and factor their axes differently as long as they make the same steps.
Here they are mapped to one set of axes, axes that every access walks with a single stride are
merged, and each access becomes an affine form.

A reduction group must satisfy: all members walk the same outer axes in the same order; the axes of
a pointwise member are the outer axes, or the outer axes followed by the reduction axes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import sympy

from scheduler.codegen.loops.statements import (
    axes_of,
    drop_unit_axes,
    to_statement,
)
from scheduler.errors import UserError
from scheduler.ir.graph import Expr
from scheduler.ir.index.affine import Affine, affine_parts
from scheduler.ir.index.bounds import INT32_MAX, bounds
from scheduler.ir.index.facts import is_multiple, is_nonnegative
from scheduler.ir.index.functions import FloorDiv, Mod
from scheduler.ir.index.ranges import Ranges
from scheduler.ir.index.trees import flat_offset
from scheduler.ir.index.widening import widen_indices
from scheduler.ir.operations import Axis, Buffer, Pointwise, Reduction, Scan, numel
from scheduler.ir.values import IndexValue, Load, Masked, Value, children, loads, walk

# 32-bit limit: a block may begin up to one block below the end, and stop past it.
MAX_STEPS = INT32_MAX - 2**16

AccessKey = tuple[str, tuple[Expr, ...]]


class UnfusableError(UserError, ValueError):
    """Fused operations that cannot be one kernel: an error of fusion, or of a graph with impossible
    sizes (a tensor of at most 0 elements that is read in another shape)."""


@dataclass(frozen=True)
class Access:
    """All reads (or the writes) of a buffer at one index. ``masked``: not always accessed."""

    buffer: str
    index: tuple[Expr, ...]
    offset: Affine
    masked: bool
    written: bool


class LoopNest:
    """Statements over ``outer`` and ``inner`` axes, and their accesses.

    Axes are ordered by memory stride and merged, unless ``arrange`` is false because a template
    walks them as they are.

    ``inner`` are the axes of a reduction or a scan. ``inputs`` are buffers that are read from
    outside, ``outputs`` those written to memory, both in order of first use: a store to a buffer
    that is not ``visible`` stays in registers (None: all are visible). ``ranges`` holds every
    symbolic size, later the loops too. ``multipliers`` are the kernel's numbers for dividing
    indices by symbolic sizes, keyed by size: none unless a template has them.
    """

    def __init__(
        self,
        members: Sequence[Pointwise | Reduction | Scan],
        buffers: Mapping[str, Buffer],
        ranges: Ranges,
        *,
        visible: Collection[str] | None = None,
        arrange: bool = True,
    ) -> None:
        self._buffers = buffers
        self.outer, self.inner = axes_of(members)
        self.statements = tuple(
            drop_unit_axes(to_statement(member, self.outer, self.inner), (*self.outer, *self.inner))
            for member in members
        )
        self.outer = tuple(axis for axis in self.outer if axis.size != 1)
        self.inner = tuple(axis for axis in self.inner if axis.size != 1)
        if arrange:
            self._order_by_stride()
        self._sizes = ranges
        self._accesses = self._find_accesses()
        if arrange:
            pinned = self._pinned_variables()
            self.outer = self._merge_axes(self.outer, pinned)
            self.inner = self._merge_axes(self.inner, pinned)
        self.ranges = ranges.over((*self.outer, *self.inner))
        widen = partial(widen_indices, ranges=self.ranges)
        self.statements = tuple(statement.map_values(widen) for statement in self.statements)
        self.multipliers: Mapping[Expr, str] = {}
        written_buffers = dict.fromkeys(statement.store.buffer for statement in self.statements)
        accessed_buffers = dict.fromkeys(access.buffer for access in self.accesses)
        self.inputs = tuple(name for name in accessed_buffers if name not in written_buffers)
        self.outputs = tuple(name for name in written_buffers if visible is None or name in visible)
        self._check_read_backs()

    # -- accesses --------------------------------------------------------------------------------

    @property
    def accesses(self) -> tuple[Access, ...]:
        """Return every access, in order of first use."""
        return tuple(self._accesses.values())

    def access(self, buffer: str, index: tuple[Expr, ...]) -> Access:
        """Return the access that a load or store of a statement makes."""
        return self._accesses[buffer, index]

    def offset(self, buffer: str, index: tuple[Expr, ...]) -> Expr:
        """Return the offset in elements, over the merged axes."""
        return self._accesses[buffer, index].offset.expr()

    def _find_accesses(self) -> dict[AccessKey, Access]:
        variables = frozenset(axis.var for axis in (*self.outer, *self.inner))
        accesses: dict[AccessKey, Access] = {}

        def add(key: AccessKey, *, masked: bool, written: bool) -> None:
            if key in accesses:
                masked, written = masked and accesses[key].masked, written or accesses[key].written
                accesses[key] = replace(accesses[key], masked=masked, written=written)
                return
            buffer, index = key
            offset = affine_parts(flat_offset(index, self._buffers[buffer].stride), variables)
            accesses[key] = Access(buffer, index, offset, masked, written)

        for statement in self.statements:
            store = statement.store
            for value in (statement.value, store.value):
                for load, masked in _loads(value, masked=False):
                    add((load.buffer, load.index), masked=masked, written=False)
            add((store.buffer, store.index), masked=False, written=True)
        return accesses

    def _values(self) -> Iterator[Value]:
        """Yield every part of the statements' trees."""
        for statement in self.statements:
            for value in (statement.value, statement.store.value):
                yield from walk(value)

    def reads(self) -> Iterator[Load]:
        """Yield the reads of the statements, and of their stores."""
        for statement in self.statements:
            yield from loads(statement.value)
            if statement.kind is not None:
                yield from loads(statement.store.value)

    def _check_read_backs(self) -> None:
        """Check that written elements are read back only by the thread that wrote them."""
        written_index = {s.store.buffer: s.store.index for s in self.statements}
        for load in self.reads():
            if load.buffer in written_index and load.index != written_index[load.buffer]:
                raise UnfusableError(
                    f"{load.buffer} is read at {load.index} in the kernel that writes it "
                    f"at {written_index[load.buffer]}: the group cannot be one kernel"
                )

    def buffer(self, name: str) -> Buffer:
        """Return the buffer of that name, whether or not it reaches memory."""
        return self._buffers[name]

    def widest_bytes(self, accesses: Iterable[Access]) -> int:
        """Return the size of the largest element of some accesses."""
        return max(self._buffers[access.buffer].dtype.itemsize for access in accesses)

    def varies_along(self, value: Value, axis: Axis) -> bool:
        """Whether a value that is read from memory, or computed, changes along the axis."""
        return any(
            (isinstance(part, IndexValue) and axis.var in part.expr.free_symbols)
            or (
                isinstance(part, Load)
                and self.access(part.buffer, part.index).offset.step(axis.var) != 0
            )
            for part in walk(value)
        )

    # -- axes ------------------------------------------------------------------------------------

    def _order_by_stride(self) -> None:
        """Order outer axes as the first store walks its buffer, largest stride first, so that
        neighbouring threads write neighbouring elements."""
        if len(self.outer) < 2:
            return
        store = self.statements[-1].store
        variables = {axis.var for axis in self.outer}
        offset = affine_parts(
            flat_offset(store.index, self._buffers[store.buffer].stride), variables
        )
        steps = [offset.step(axis.var) for axis in self.outer]
        if all(step is not None and step.is_Integer for step in steps):
            order = sorted(range(len(steps)), key=lambda i: -int(steps[i] or 0))
            self.outer = tuple(self.outer[i] for i in order)

    def _pinned_variables(self) -> set[sympy.Symbol]:
        """Return variables whose own value is used: their axes cannot merge."""
        pinned: set[sympy.Symbol] = set()
        for part in self._values():
            if isinstance(part, IndexValue):
                pinned |= part.expr.free_symbols
        return pinned.union(*(access.offset.nonlinear for access in self.accesses))

    def _merge_axes(self, axes: tuple[Axis, ...], pinned: set[sympy.Symbol]) -> tuple[Axis, ...]:
        merged = list(axes[-1:])
        for axis in reversed(axes[:-1]):
            inner_axis = merged[0]
            can_merge = not {axis.var, inner_axis.var} & pinned and all(
                access.offset.can_merge(axis.var, inner_axis.var, inner_axis.size)
                for access in self.accesses
            )
            if not can_merge:
                merged.insert(0, axis)
                continue
            merged[0] = Axis(inner_axis.var, axis.size * inner_axis.size)
            self._accesses = {
                key: replace(access, offset=access.offset.merge(axis.var))
                for key, access in self._accesses.items()
            }
        return tuple(merged)

    # -- queries by templates ----------------------------------------------------------------------

    @property
    def outer_numel(self) -> Expr:
        """Return the number of outer points."""
        return numel(self.outer)

    @property
    def inner_numel(self) -> Expr:
        """Return the number of steps of the inner axes."""
        return numel(self.inner)

    def symbols(self) -> tuple[str, ...]:
        """Return the symbolic sizes that the kernel needs, sorted."""
        loop_vars = {axis.var for axis in (*self.outer, *self.inner)}
        symbols: set[sympy.Symbol] = set()
        for axis in (*self.outer, *self.inner):
            symbols |= axis.size.free_symbols
        for access in self._accesses.values():
            symbols |= access.offset.rest.free_symbols
            for coefficient in access.offset.coefficients.values():
                symbols |= coefficient.free_symbols
        for name in (*self.inputs, *self.outputs):
            for size in self._buffers[name].size:
                symbols |= size.free_symbols
        for part in self._values():
            if isinstance(part, IndexValue):
                symbols |= part.expr.free_symbols
            elif isinstance(part, Load):
                symbols = symbols.union(*(indirect.size.free_symbols for indirect in part.indirect))
        return tuple(sorted(s.name for s in symbols - loop_vars if s.name in self._sizes.intervals))

    def divisors(self) -> tuple[Expr, ...]:
        """Return the symbolic sizes that indices are divided by at each step: axis sizes of a flat
        index, and divisors in reads, writes and computations; without those that may be
        negative."""
        divisors = [axis.size for axis in (self.inner or self.outer)[1:]]
        exprs = [access.offset.rest for access in self.accesses]
        exprs += [part.expr for part in self._values() if isinstance(part, IndexValue)]
        for expr in exprs:
            for division in expr.atoms(FloorDiv, Mod):
                if all(is_nonnegative(arg, self.ranges) for arg in division.args):
                    divisors.append(division.args[1])
        return tuple(
            expr
            for expr in dict.fromkeys(divisors)
            if expr.free_symbols
            and all(symbol.name in self._sizes.intervals for symbol in expr.free_symbols)
        )

    def needs_64_bits(self) -> bool:
        """Whether a step count or an offset may exceed 32 bits."""
        return any(map(self._is_large, self.extents()))

    def extents(self) -> tuple[Expr, ...]:
        """Return the step counts, and the extent of each buffer, in elements."""
        steps = self.outer_numel * self.inner_numel
        return tuple(dict.fromkeys((steps, *self._buffer_extents())))

    def _buffer_extents(self) -> Iterator[Expr]:
        for name in (*self.inputs, *self.outputs):
            yield flat_offset(self._buffers[name].size, self._buffers[name].stride)

    def offsets_need_64_bits(self) -> bool:
        """Whether an element's offset in a buffer may exceed 32 bits."""
        return any(map(self._is_large, self._buffer_extents()))

    def _is_large(self, count: Expr) -> bool:
        return bounds(count, self._sizes)[1] > MAX_STEPS

    def is_vectorizable(self, access: Access, axis: Axis, width: int) -> bool:
        """Whether ``width`` steps along ``axis`` are one aligned run of memory."""
        return (
            is_multiple(axis.size, width) and self.alignment_requirements(access, axis, width) == ()
        )

    def alignment_requirements(
        self, access: Access, axis: Axis, width: int
    ) -> tuple[Expr, ...] | None:
        """Return the sizes that must be multiples of ``width`` at run time for ``width`` steps
        along ``axis`` to be one aligned run of memory; None if no sizes make them one.

        If the axis is the only one and not that of a reduction or scan, its own end does not
        matter: the caller handles a partial run there.
        """
        offset = access.offset
        is_in_memory = access.buffer in self.inputs or access.buffer in self.outputs
        if access.masked or not is_in_memory or offset.step(axis.var) != 1:
            return None
        steps = (step for var, step in offset.coefficients.items() if var != axis.var)
        end_sizes = () if self.outer == (axis,) and not self.inner else (axis.size,)
        unaligned = [
            value for value in (offset.rest, *steps, *end_sizes) if not is_multiple(value, width)
        ]
        symbols = {symbol for value in unaligned for symbol in value.free_symbols}
        has_known_sizes = all(symbol.name in self._sizes.intervals for symbol in symbols)
        if not has_known_sizes or any(value.is_Integer for value in unaligned):
            return None
        return tuple(dict.fromkeys(unaligned))


def _loads(value: Value, *, masked: bool) -> Iterator[tuple[Load, bool]]:
    """Yield each read, and whether it happens only under a condition."""
    if isinstance(value, Load):
        yield value, masked
    if isinstance(value, Masked):
        yield from _loads(value.condition, masked=masked)
        yield from _loads(value.value, masked=True)
        yield from _loads(value.other, masked=True)
        return
    for child in children(value):
        yield from _loads(child, masked=masked)
