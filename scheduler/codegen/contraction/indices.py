"""A contraction in a kernel's terms: flat indices, and addresses with their strides as arguments.

Every size and stride becomes a kernel argument, so that problems that differ only in numbers render
the same source and share one kernel. The source contains only the facts that decide how memory is
read: a stride of 0 (broadcast) or 1 (contiguous), and which axes collapse into one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import sympy

from scheduler.codegen.kernel import ArgType
from scheduler.codegen.kernel_interface import KernelInterface
from scheduler.ir.graph import Expr
from scheduler.ir.index.affine import Affine, affine
from scheduler.ir.index.bounds import INT32_MAX, bounds
from scheduler.ir.index.functions import FloorDiv, Mod, symbol
from scheduler.ir.index.ranges import Ranges, loop_ranges
from scheduler.ir.index.trees import access_offset
from scheduler.ir.index.widening import widen_indices
from scheduler.ir.operations import Axis, Buffer, Store, numel
from scheduler.ir.values import IndexValue, Load, Value, rebuild

_ZERO = sympy.Integer(0)
_ONE = sympy.Integer(1)


@dataclass(frozen=True)
class IndexGroup:
    """One of the four indices (batch, m, n, k): a flat one, or one for each axis.

    In the kernel's source the flat index of group ``m`` is ``m.flat`` and its axes ``m.i0``,
    ``m.i1`` …, outermost first.
    """

    name: str
    axes: tuple[Axis, ...]

    @property
    def flat(self) -> sympy.Symbol:
        return symbol(f"{self.name}_flat")

    def component(self, position: int) -> sympy.Symbol:
        """Return the index along one axis; the flat one if there is no other."""
        return symbol(f"{self.name}_i{position}") if len(self.axes) > 1 else self.flat

    @property
    def extent(self) -> Expr:
        return numel(self.axes)

    @property
    def innermost(self) -> Axis | None:
        """Return the last axis with more than one point."""
        return next((axis for axis in reversed(self.axes) if axis.size != 1), None)

    @property
    def components(self) -> tuple[sympy.Symbol, ...]:
        """Return the indices along the axes, if there are several."""
        return tuple(map(self.component, range(len(self.axes)))) if len(self.axes) > 1 else ()

    @property
    def texts(self) -> dict[str, str]:
        """Return symbol names and their text in the kernel."""
        names = {self.flat.name: f"{self.name}.flat"}
        for position in range(len(self.axes) if len(self.axes) > 1 else 0):
            names[self.component(position).name] = f"{self.name}.i{position}"
        return names


def address(access: Load | Store, buffer: Buffer, ranges: Ranges) -> Affine | None:
    """Return the element's offset in its buffer, affine over the loops of ``ranges`` and over
    values read from memory; None if it is not affine."""
    indirect_indices = access.indirect if isinstance(access, Load) else ()
    variables = {*ranges.extents, *(indirect.symbol for indirect in indirect_indices)}
    return affine(access_offset(access, buffer, ranges), variables)


def collapsed_stride(form: Affine, group: IndexGroup) -> Expr | None:
    """Return the coefficient of the group's flat index if its axes collapse in this address.

    Axis i merges with axis i + 1 if its step is the whole extent of the inner one.
    """
    axes = [axis for axis in group.axes if axis.size != 1]
    if not axes:
        return _ZERO
    if all(form.can_merge(outer.var, inner.var, inner.size) for outer, inner in pairwise(axes)):
        return form.at(axes[-1].var)
    return None


@dataclass(frozen=True)
class Strides:
    """A strided access: the offset of its first element, and for each group of indices one stride
    along its flat index, or one for each of its axes if they do not collapse."""

    first: Expr
    steps: Mapping[str, tuple[Expr, ...]]


class Parametrizer:
    """Turns trees over the lowering's axes into trees over the kernel's indices and arguments.

    A stride of operand X along axis 0 of m becomes the argument ``X_m0`` (``X_m`` along the flat
    index); numbers inside other expressions become ``c0``, ``c1`` …
    """

    def __init__(
        self,
        kernel: KernelInterface,
        groups: Sequence[IndexGroup],
        buffers: Mapping[str, Buffer],
        counts: dict[str, int],
        sizes: Ranges,
        *,
        wide: bool,
    ) -> None:
        self._kernel = kernel
        self._groups = groups
        self._buffers = buffers
        self._index_type: ArgType = "i64" if wide else "i32"
        self._ranges = loop_ranges(*(group.axes for group in groups))
        self._values = Ranges(self._ranges.loops, sizes.sizes)
        self._rename = {
            axis.var: group.component(position) if axis.size != 1 else _ZERO
            for group in groups
            for position, axis in enumerate(group.axes)
        }
        self._offsets: dict[tuple[str, tuple[Expr, ...]], Expr] = {}
        self._strides: dict[tuple[str, tuple[Expr, ...]], Strides] = {}
        self._constants: dict[tuple[Expr, ArgType], Expr] = {}
        self._name_counts = counts  # shared by all that name arguments of the same kernel
        self._loaded_symbols: set[sympy.Symbol] = set()  # stand for values read from memory

    def value(self, value: Value) -> Value:
        """Return the tree with every index in the kernel's own terms."""

        def parametrize(part: Value) -> Value | None:
            if isinstance(part, Load):
                self._loaded_symbols.update(indirect.symbol for indirect in part.indirect)
                index = (self.offset(part),)
                indirect = tuple(
                    replace(read, size=self.expression(read.size), value=self.value(read.value))
                    for read in part.indirect
                )
                return replace(part, index=index, indirect=indirect)
            if isinstance(part, IndexValue):
                large = part.expr.is_Symbol and bounds(part.expr, self._values)[1] > INT32_MAX
                type_ = "i64" if large else self._index_type
                return replace(part, expr=self._expression(part.expr, type_))
            return None

        return rebuild(widen_indices(value, self._values), parametrize)

    def store(self, store: Store) -> Store:
        """Return the store with a flat offset as its only index."""
        return replace(store, index=(self.offset(store),), value=self.value(store.value))

    def expression(self, expr: Expr) -> Expr:
        """Return an index over the kernel's own indices, with its numbers as arguments."""
        return self._expression(expr, self._index_type)

    def strides(self, access: Load | Store) -> Strides | None:
        """Return the steps of an access, as arguments; None if its offset is not a sum of steps."""
        self.offset(access)
        return self._strides.get((access.buffer, access.index))

    def offset(self, access: Load | Store) -> Expr:
        """Return the flat offset of an access, with strides as arguments."""
        key = (access.buffer, access.index)
        if key in self._offsets:
            return self._offsets[key]
        name = self._kernel.arg_name(access.buffer)
        earlier_accesses = self._name_counts.get(name, 0)
        self._name_counts[name] = earlier_accesses + 1
        prefix = name if earlier_accesses == 0 else f"{name}{chr(ord('a') + earlier_accesses)}"
        buffer = self._buffers[access.buffer]
        form = address(access, buffer, self._ranges)
        if form is None:
            offset = access_offset(access, buffer, self._ranges)
            self._offsets[key] = self._expression(offset, "i64")
            return self._offsets[key]
        first = self._stride_argument(f"{prefix}_at", form.rest)
        steps: dict[str, tuple[Expr, ...]] = {}
        terms = [first]
        for group in self._groups:
            flat_stride = collapsed_stride(form, group)
            if flat_stride is not None:
                stride = self._stride_argument(f"{prefix}_{group.name}", flat_stride)
                steps[group.name] = (stride,)
                terms.append(group.flat * stride)
                continue
            steps[group.name] = tuple(
                self._stride_argument(f"{prefix}_{group.name}{position}", form.at(axis.var))
                for position, axis in enumerate(group.axes)
            )
            for axis, stride in zip(group.axes, steps[group.name], strict=True):
                terms.append(self._rename[axis.var] * stride)
        self._strides[key] = Strides(first, steps)
        for position, indirect in enumerate(access.indirect if isinstance(access, Load) else ()):
            terms.append(
                indirect.symbol
                * self._stride_argument(f"{prefix}_x{position}", form.at(indirect.symbol))
            )
        self._offsets[key] = sympy.Add(*terms)
        return self._offsets[key]

    def _stride_argument(self, name: str, value: Expr) -> Expr:
        """Return the argument that passes ``value``; 0 and 1 are literals in the source instead."""
        if value in (_ZERO, _ONE):
            return value
        return symbol(self._kernel.add_scalar(name, value, "i64"))

    def _expression(self, expr: Expr, type_: ArgType) -> Expr:
        """Return any index expression with its numbers as arguments."""
        if expr in self._rename:
            return self._rename[expr]
        if expr in self._loaded_symbols:
            return expr
        if not self._varies(expr):
            return self._constant(expr, type_)
        if isinstance(expr, sympy.Add | sympy.Mul):
            fixed_parts = [part for part in expr.args if not self._varies(part)]
            varying_parts = [part for part in expr.args if self._varies(part)]
            constant = [self._constant(expr.func(*fixed_parts), type_)] if fixed_parts else []
            return expr.func(*constant, *(self._expression(part, type_) for part in varying_parts))
        if isinstance(expr, FloorDiv | Mod | sympy.Max | sympy.Min):
            rebuilt: Callable[..., Expr] = type(expr)
            return rebuilt(*(self._expression(arg, self._index_type) for arg in expr.args))
        return expr

    def _varies(self, expr: Expr) -> bool:
        return not expr.free_symbols.isdisjoint(self._ranges.extents.keys() | self._loaded_symbols)

    def _constant(self, expr: Expr, type_: ArgType) -> Expr:
        if expr.could_extract_minus_sign():
            return -self._constant(-expr, type_)
        if expr in (_ZERO, _ONE):
            return expr
        key = (expr, type_)
        if key not in self._constants:
            count = self._name_counts.get("c", 0)
            self._name_counts["c"] = count + 1
            name = f"c{count}"
            self._constants[key] = symbol(self._kernel.add_scalar(name, expr, type_))
        return self._constants[key]
