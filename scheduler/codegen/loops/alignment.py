"""Rows with arbitrary start addresses, divided into packs at aligned addresses.

Which steps of a row are aligned depends on where the row begins. All accesses that are aligned at
the same steps as a chosen one, the *lead*, move whole packs from the row's first aligned step; the
few steps before and after the packs are processed one at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import sympy

from scheduler.codegen.loops.nest import Access, LoopNest
from scheduler.codegen.printing.index import IndexPrinter
from scheduler.ir.graph import Expr
from scheduler.ir.index.affine import Affine
from scheduler.ir.index.facts import is_multiple
from scheduler.ir.operations import Axis


@dataclass(frozen=True)
class Packs:
    """The accesses that can move ``width`` steps along an axis at once.

    Those in ``aligned`` do so if every size in ``sizes`` is a multiple of ``width``. Those in
    ``cut`` do so wherever rows begin if packs begin where the offset ``lead`` is aligned; it is
    None if rows cannot be divided there.
    """

    width: int
    aligned: tuple[Access, ...] = ()
    sizes: tuple[Expr, ...] = ()
    lead: Affine | None = None
    cut: tuple[Access, ...] = ()

    def conditions(self, index: IndexPrinter, width: str = "kVector") -> list[str]:
        """Return the conditions under which ``aligned`` are, as far as sizes are unknown."""
        return [f"{index.atom(size)} % {width} == 0" for size in self.sizes]


def find_packs(
    nest: LoopNest, axis: Axis | None, width: int, accesses: Sequence[Access] | None = None
) -> Packs:
    """Return the packs of some accesses (of all, by default) along ``axis``."""
    if axis is None:
        return Packs(width)
    candidates = nest.accesses if accesses is None else accesses
    found = [(a, nest.alignment_requirements(a, axis, width)) for a in candidates]
    lead = find_lead(nest, axis, width)
    return Packs(
        width,
        tuple(access for access, sizes in found if sizes is not None),
        tuple(dict.fromkeys(size for _, sizes in found for size in sizes or ())),
        lead,
        tuple(a for a in candidates if lead and is_aligned_with(nest, a, lead, axis, width)),
    )


def find_lead(nest: LoopNest, axis: Axis, width: int) -> Affine | None:
    """Return the offset that determines where packs of ``width`` steps along ``axis`` begin: the
    one that most others are aligned with, preferring offsets that differ between rows. None if
    nothing can be divided into packs: ``axis`` must be the only inner axis."""
    if nest.inner != (axis,) or width == 1:
        return None
    runs = [access for access in nest.accesses if _is_contiguous(nest, access, axis)]
    found = {access.offset.expr(): access for access in runs}
    if not found:
        return None
    counts = Counter(access.offset.expr() for access in runs)

    def gain(access: Access) -> tuple[bool, int]:
        offset = access.offset
        rows = {one.var for one in nest.outer}
        moves = not rows.isdisjoint({*offset.coefficients, *offset.nonlinear})
        return moves, sum(
            counts[expr]
            for expr, other in found.items()
            if is_aligned_with(nest, other, offset, axis, width)
        )

    return max(found.values(), key=gain).offset


def is_aligned_with(nest: LoopNest, access: Access, lead: Affine, axis: Axis, width: int) -> bool:
    """Whether an access is aligned at the same steps of ``axis`` as ``lead``, in every row."""
    if not _is_contiguous(nest, access, axis):
        return False
    others = {*access.offset.coefficients, *lead.coefficients} - {axis.var}
    differences = [access.offset.at(var) - lead.at(var) for var in others]
    differences.append(access.offset.rest - lead.rest)
    return all(is_multiple(sympy.expand(part), width) for part in differences)


def row_start(lead: Affine, axis: Axis) -> Expr:
    """Return the offset of a row's first step along ``axis``."""
    return lead.expr().xreplace({axis.var: sympy.Integer(0)})


def _is_contiguous(nest: LoopNest, access: Access, axis: Axis) -> bool:
    """Whether neighbouring steps are contiguous in memory, at an offset that sizes and rows
    determine."""
    inside = access.buffer in nest.inputs or access.buffer in nest.outputs
    if access.masked or not inside or access.offset.step(axis.var) != 1:
        return False
    walked = {one.var for one in (*nest.outer, *nest.inner)}
    symbols = access.offset.expr().free_symbols - walked
    return all(symbol.name in nest.ranges.intervals for symbol in symbols)
