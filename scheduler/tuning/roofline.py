"""What a board allows: no launch is faster than its bytes over the memory's bandwidth, nor than its
products over the peak rate (S. Williams, A. Waterman and D. Patterson, "Roofline", 2009).

Bandwidths and rates are the board's, whose ``sources`` name where they are published.
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.targets import Board
from scheduler.tuning.work import Work


@dataclass(frozen=True)
class Limit:
    """The least time of one launch on a board, in nanoseconds, and what bounds it.

    ``products_ns`` is 0 where there are no products, or no rate is published for their dtype.
    """

    memory_ns: float
    products_ns: float

    @property
    def least_ns(self) -> float:
        """The greater of the time of memory traffic and that of the products."""
        return max(self.memory_ns, self.products_ns)

    @property
    def bound(self) -> str:
        """``products`` or ``memory``; "" where there is nothing to do."""
        if self.least_ns == 0:
            return ""
        return "products" if self.products_ns > self.memory_ns else "memory"


@dataclass(frozen=True)
class Intensity:
    """Operations and what they are: multiplications and additions of products in ``dtype`` on
    ``unit`` (matrix), or, for work without products, functions of single values (vector), of
    which there is only an estimate."""

    operations: int
    dtype: str
    unit: str
    per_byte: float


def limit(work: Work, board: Board, *, cached: bool = False) -> Limit:
    """What the board allows for this work.

    With ``cached`` as much as fits in the board's caches may be there already: then no honest
    sample is faster, whatever ran before it.
    """
    moved = float(work.bytes)
    if cached:
        moved = max(0.0, moved - board.l2_bytes - board.last_level_bytes)
    return Limit(
        memory_ns=1e9 * moved / board.memory_bytes_per_s,
        products_ns=products_ns(work.matrix_flops, work.matrix_dtype, board),
    )


def products_ns(flops: float, dtype: str, board: Board) -> float:
    """The least time of so many operations of products; 0 where no rate is published."""
    peak = board.peak_flops(dtype) if dtype else None
    return 0.0 if peak is None else 1e9 * flops / peak


def intensity(work: Work) -> Intensity | None:
    """Where the work stands on a roofline; None where it has no operations, or moves nothing."""
    if not work.bytes:
        return None
    if work.matrix_flops:
        per_byte = work.matrix_flops / work.bytes
        return Intensity(work.matrix_flops, work.matrix_dtype, "matrix", per_byte)
    if work.vector_ops:
        return Intensity(work.vector_ops, "f32", "vector", work.vector_ops / work.bytes)
    return None


def peak(kind: Intensity, board: Board) -> float | None:
    """The board's operations a second of that kind; None where no rate is published."""
    return board.peak_flops(kind.dtype, use_matrix=kind.unit == "matrix")
