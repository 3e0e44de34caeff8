"""Rows with arbitrary start addresses, divided into packs at aligned addresses.

Which steps of a row are aligned depends on where the row begins. All accesses that are aligned at
the same steps as a chosen one, the *lead*, move whole packs from the row's first aligned step; the
few steps before and after the packs are processed one at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import sympy

from scheduler.codegen.legality import illegal
from scheduler.codegen.loops.nest import Access, LoopNest
from scheduler.codegen.printing.index import IndexPrinter
from scheduler.errors import Rejected
from scheduler.ir.graph import Expr
from scheduler.ir.index.affine import Affine
from scheduler.ir.index.facts import is_multiple
from scheduler.ir.operations import Axis

VECTORS = (1, 2, 4, 8)
MAX_LOAD_BYTES = 16  # one lane's load or store: global_load_dwordx4


@dataclass(frozen=True)
class Pack:
    """``width`` steps along ``axis`` that one thread computes. The accesses in ``movable`` move
    them at once; None: those that sizes are known to align.

    With ``lead``, packs begin where that offset is aligned. With ``strided`` they are not
    neighbours, and nothing is moved at once: it is the text of the flat index, over the outer axes,
    of point ``j``.
    """

    axis: Axis
    width: int
    movable: tuple[Access, ...] | None = None
    lead: Affine | None = None
    strided: str = ""

    @property
    def row_start(self) -> Expr | None:
        """Return the offset of a row's first step, if its packs begin at aligned addresses."""
        return self.lead.expr().xreplace({self.axis.var: sympy.Integer(0)}) if self.lead else None

    def moves(self, nest: LoopNest, access: Access) -> bool:
        """Whether an access moves the steps at once."""
        if self.movable is None:
            return nest.is_vectorizable(access, self.axis, self.width)
        return access in self.movable


@dataclass(frozen=True)
class Packs:
    """Which of some accesses can move ``width`` steps along ``axis`` at once."""

    nest: LoopNest
    axis: Axis | None
    width: int
    accesses: tuple[Access, ...]

    @cached_property
    def _requirements(self) -> list[tuple[Access, tuple[Expr, ...]]]:
        """Return the accesses that sizes can align, each with the sizes that must be multiples of
        ``width``."""
        if self.axis is None:
            return []
        needs = self.nest.alignment_requirements
        requirements = ((access, needs(access, self.axis, self.width)) for access in self.accesses)
        return [(access, sizes) for access, sizes in requirements if sizes is not None]

    @cached_property
    def aligned(self) -> tuple[Access, ...]:
        """Return the accesses that can if every size in ``sizes`` is a multiple of ``width``."""
        return tuple(access for access, _ in self._requirements)

    @cached_property
    def sizes(self) -> tuple[Expr, ...]:
        """Return the sizes that must be multiples of ``width``, as far as they are unknown."""
        return tuple(dict.fromkeys(size for _, sizes in self._requirements for size in sizes))

    @cached_property
    def lead(self) -> Affine | None:
        """Return the offset that decides where rows are divided into packs; None if they cannot
        be."""
        return find_lead(self.nest, self.axis, self.width) if self.axis else None

    @cached_property
    def movable_if_cut(self) -> tuple[Access, ...]:
        """Return the accesses that can wherever rows begin, if packs begin where ``lead`` is
        aligned."""
        lead, axis = self.lead, self.axis
        if lead is None or axis is None:
            return ()
        moves = partial(is_aligned_with, self.nest, lead=lead, axis=axis, width=self.width)
        return tuple(access for access in self.accesses if moves(access))

    def conditions(self, index: IndexPrinter, width: str = "kVector") -> list[str]:
        """Return the conditions under which ``aligned`` are, as far as sizes are unknown."""
        return [f"{index.atom(size)} % {width} == 0" for size in self.sizes]

    def pack(self, *, cut: bool = False, strided: str = "") -> Pack | None:
        """Return the steps of a thread whose accesses are aligned, or cut; None if it has one."""
        if self.axis is None or self.width == 1:
            return None
        if strided:
            return Pack(self.axis, self.width, (), strided=strided)
        if cut:
            return Pack(self.axis, self.width, self.movable_if_cut, self.lead)
        return Pack(self.axis, self.width, self.aligned)


def reject_wide(
    nest: LoopNest, accesses: Sequence[Access], width: int, lane: str = ""
) -> Rejected | None:
    """Reject packs that exceed what a thread loads at once; ``lane`` is the target's word for
    it."""
    widest_bytes = nest.widest_bytes(accesses)
    if width * widest_bytes <= MAX_LOAD_BYTES:
        return None
    limit = f"{MAX_LOAD_BYTES} bytes per {lane}" if lane else f"{MAX_LOAD_BYTES} bytes"
    return illegal(f"{width} elements of {widest_bytes} bytes exceed the limit of {limit}")


def find_lead(nest: LoopNest, axis: Axis, width: int) -> Affine | None:
    """Return the offset that determines where packs of ``width`` steps along ``axis`` begin: the
    one that most others are aligned with, preferring offsets that differ between rows. None if
    nothing can be divided into packs: ``axis`` must be the only inner axis."""
    if nest.inner != (axis,) or width == 1:
        return None
    contiguous = [access for access in nest.accesses if _is_contiguous(nest, access, axis)]
    access_by_offset = {access.offset.expr(): access for access in contiguous}
    if not access_by_offset:
        return None
    counts = Counter(access.offset.expr() for access in contiguous)

    def preference(access: Access) -> tuple[bool, int]:
        offset = access.offset
        outer_vars = {outer_axis.var for outer_axis in nest.outer}
        varies_between_rows = not outer_vars.isdisjoint({*offset.coefficients, *offset.nonlinear})
        return varies_between_rows, sum(
            counts[expr]
            for expr, other_access in access_by_offset.items()
            if is_aligned_with(nest, other_access, offset, axis, width)
        )

    return max(access_by_offset.values(), key=preference).offset


def is_aligned_with(nest: LoopNest, access: Access, lead: Affine, axis: Axis, width: int) -> bool:
    """Whether an access is aligned at the same steps of ``axis`` as ``lead``, in every row."""
    if not _is_contiguous(nest, access, axis):
        return False
    other_vars = {*access.offset.coefficients, *lead.coefficients} - {axis.var}
    differences = [access.offset.at(var) - lead.at(var) for var in other_vars]
    differences.append(access.offset.rest - lead.rest)
    return all(is_multiple(sympy.expand(difference), width) for difference in differences)


def _is_contiguous(nest: LoopNest, access: Access, axis: Axis) -> bool:
    """Whether neighbouring steps are contiguous in memory, at an offset that sizes and rows
    determine."""
    is_in_memory = access.buffer in nest.inputs or access.buffer in nest.outputs
    if access.masked or not is_in_memory or access.offset.step(axis.var) != 1:
        return False
    loop_vars = {loop.var for loop in (*nest.outer, *nest.inner)}
    size_symbols = access.offset.expr().free_symbols - loop_vars
    return all(symbol.name in nest.ranges.intervals for symbol in size_symbols)
