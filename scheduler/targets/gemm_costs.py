"""Cost terms of matrix product estimates, fitted to a GPU."""

from __future__ import annotations

from dataclasses import dataclass

# Share of the matrix pipes' cycles, or of reading, in which nothing else is done: of two
# memory-bound configurations, the one that computes less is better.
ISSUE_SHARE = 0.02


@dataclass(frozen=True)
class GemmCosts:
    """The fitted constants of ``estimate_gemm_us``, in cycles unless stated otherwise.

    ``latency`` is from a memory load until its data can be multiplied; elements that windows share
    save ``window_saving`` of it. ``block_gap`` is from a block's last step to the first step of the
    next block while no other block runs. ``exposed_pipes`` is the part of the shorter of matrix
    pipes and the rest that a SIMD's only wave does not hide; ``spread`` scales it if reads and
    loads are interleaved with the products; ``exposed_lds`` is the exposed part of the shorter of
    LDS and the path from L2. ``lds`` and ``path`` scale their own cycles; ``refetch`` is the part
    of data fetched by another block that is fetched again. ``result`` is a wave's cost per result
    of a lane, which ``wide_result`` scales for 32x32 instructions (None: the difference is unknown,
    and they are not tried). ``stores`` is the exposed part of the stores' memory time (None: fitted
    without stores and without shared window elements), ``partial`` the same for parts of k, which
    another launch of ``launch_us`` adds; ``exposed`` that of the shorter of computing and reading.
    ``other_vgprs`` are those of a lane besides accumulators and the next tile. ``gemv_path`` is the
    part of the cycles of the path from L2 that a step of few rows waits for.
    """

    latency: float = 900.0
    window_saving: float = 0.0
    block_gap: float = 5000.0
    barrier: float = 100.0
    exposed_pipes: float = 0.8
    spread: float = 0.5
    exposed_lds: float = 1.0
    lds: float = 1.0
    path: float = 1.0
    refetch: float = 0.1
    result: float = 12.0
    stores: float | None = None
    partial: float = 1.0
    launch_us: float = 3.0
    start: float = 3000.0
    other_vgprs: int = 48
    wide_result: float | None = None
    gemv_path: float = 0.0
    exposed: float = ISSUE_SHARE
