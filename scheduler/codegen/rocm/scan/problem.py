"""What every part of the scan template reads of a group: how its rows lie in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from scheduler.codegen.loops.alignment import VECTORS, Packs
from scheduler.codegen.rocm.loop import RowProblem
from scheduler.ir.index.affine import Affine
from scheduler.ir.operations import Axis

LONG_ROW = 16  # steps of a block: longer than another launch takes


@dataclass(frozen=True)
class ScanProblem(RowProblem):
    """A group of scans over the same rows."""

    @property
    def column_axis(self) -> Axis | None:
        """Return the outer axis along which every access is contiguous, if there is one."""
        axis = self.nest.outer[-1] if self.nest.outer else None
        if axis is None or any(a.offset.step(axis.var) != 1 for a in self.nest.accesses):
            return None
        return axis

    @cached_property
    def column_packs(self) -> Mapping[int, Packs]:
        """Return the packs of neighbouring columns, by width."""
        axis, accesses = self.column_axis, self.nest.accesses
        return {width: Packs(self.nest, axis, width, accesses) for width in VECTORS}

    def can_align(self, packs: Packs) -> bool:
        """Whether some sizes align packs for every access."""
        return len(packs.aligned) == len(self.nest.accesses)

    def lead(self, width: int) -> Affine | None:
        """Return the offset that decides where rows are cut into packs, if everything can be cut
        there."""
        packs = self.row_packs[width]
        return packs.lead if len(packs.movable_if_cut) == len(self.nest.accesses) else None

    def cuts_always(self, width: int) -> bool:
        """Whether rows are cut for all sizes: if no sizes align packs, and rows are long."""
        can_cut = self.lead(width) is not None and self.steps >= LONG_ROW * width
        return can_cut and not self.can_align(self.row_packs[width])
