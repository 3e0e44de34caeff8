"""The roofline of a board: no launch is faster than its bytes over the memory's bandwidth, nor than
its products over the peak rate (S. Williams, A. Waterman and D. Patterson, "Roofline", 2009).

Bandwidths and rates are the board's; its ``sources`` name where they are published.
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.targets import Board
from scheduler.tuning.work import Work


@dataclass(frozen=True)
class Limit:
    """The least time of one launch on a board, in nanoseconds, and what bounds it.

    ``products_ns`` is 0 if there are no products, or no rate is published for their dtype.
    """

    memory_ns: float
    products_ns: float

    @property
    def least_ns(self) -> float:
        """The greater of the memory time and the products' time."""
        return max(self.memory_ns, self.products_ns)

    @property
    def bound(self) -> str:
        """``products`` or ``memory``; "" if there is nothing to do."""
        if self.least_ns == 0:
            return ""
        return "products" if self.products_ns > self.memory_ns else "memory"


@dataclass(frozen=True)
class Intensity:
    """A number of operations and their kind: multiplications and additions of products in ``dtype``
    on ``unit`` (matrix), or, for work without products, functions of single values (vector), which
    are only estimated."""

    operations: int
    dtype: str
    unit: str
    per_byte: float


def limit(work: Work, board: Board, *, cached: bool = False) -> Limit:
    """Return the least time of this work on the board.

    With ``cached``, as much as fits into the board's caches may be there already: no honest sample
    is faster, whatever ran before it.
    """
    moved_bytes = float(work.bytes)
    if cached:
        moved_bytes = max(0.0, moved_bytes - board.l2_bytes - board.last_level_bytes)
    return Limit(
        memory_ns=1e9 * moved_bytes / board.memory_bytes_per_s,
        products_ns=products_ns(work.matrix_flops, work.matrix_dtype, board),
    )


def products_ns(flops: float, dtype: str, board: Board) -> float:
    """Return the least time of so many product operations; 0 if no rate is published."""
    peak = board.peak_flops(dtype) if dtype else None
    return 0.0 if peak is None else 1e9 * flops / peak


def intensity(work: Work) -> Intensity | None:
    """Return the work's position on a roofline; None if it has no operations or moves no bytes."""
    if not work.bytes:
        return None
    if work.matrix_flops:
        per_byte = work.matrix_flops / work.bytes
        return Intensity(work.matrix_flops, work.matrix_dtype, "matrix", per_byte)
    if work.vector_ops:
        return Intensity(work.vector_ops, "f32", "vector", work.vector_ops / work.bytes)
    return None


def peak(work_intensity: Intensity, board: Board) -> float | None:
    """Return the board's operations per second of that kind; None if no rate is published."""
    return board.peak_flops(work_intensity.dtype, use_matrix=work_intensity.unit == "matrix")
