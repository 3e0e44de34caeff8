"""Columns that several blocks share: what each leaves in the workspace, and the kernel that
combines it."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.codegen.single_launch import ceil_div
from scheduler.ir.graph import Expr
from scheduler.ir.index.functions import as_expr

_THREADS = 256
_F32_BYTES = 4
_ALIGNED_BYTES = 256


@dataclass(frozen=True)
class SplitWorkspace:
    """``splits`` outputs of ``rows`` rows (of all batch entries) and ``depth`` columns in f32, and
    two numbers for each row of each, in the workspace from byte ``begin``."""

    splits: int
    rows: Expr
    depth: int
    begin: Expr

    @property
    def totals(self) -> Expr:
        """The byte at which the highest scores and the totals begin."""
        return self.begin + _aligned(self.rows * (self.splits * self.depth * _F32_BYTES))

    @property
    def end(self) -> Expr:
        """The byte after all of it."""
        return self.totals + _aligned(self.rows * (self.splits * 2 * _F32_BYTES))

    @property
    def threads(self) -> int:
        """Of a block of the kernel that combines, each for two columns."""
        return _THREADS

    @property
    def blocks(self) -> Expr:
        """How many it has."""
        return ceil_div(self.rows * (self.depth // 2), _THREADS)


def _aligned(count: Expr) -> Expr:
    return ceil_div(count, _ALIGNED_BYTES) * as_expr(_ALIGNED_BYTES)
