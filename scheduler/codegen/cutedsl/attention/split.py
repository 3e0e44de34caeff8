"""Columns that several blocks share: the partial results in the workspace, and the kernel that
combines them."""

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
        """Return the byte at which the highest scores and the totals begin."""
        return self.begin + _aligned(self.rows * (self.splits * self.depth * _F32_BYTES))

    @property
    def end(self) -> Expr:
        """Return the byte after the last one."""
        return self.totals + _aligned(self.rows * (self.splits * 2 * _F32_BYTES))

    @property
    def threads(self) -> int:
        """Return the threads per block of the combining kernel, each for two columns."""
        return _THREADS

    @property
    def blocks(self) -> Expr:
        """Return the number of its blocks."""
        return ceil_div(self.rows * (self.depth // 2), _THREADS)


def _aligned(count: Expr) -> Expr:
    return ceil_div(count, _ALIGNED_BYTES) * as_expr(_ALIGNED_BYTES)
