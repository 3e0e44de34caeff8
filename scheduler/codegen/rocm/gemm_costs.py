"""Cost terms of matrix product estimates, and the constants fitted to a board."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.codegen.rocm.gemm_config import GemmConfig, GemmProblem, tile_count
from scheduler.codegen.rocm.machine import Machine

# Share of the matrix pipes' cycles, or of reading, in which nothing else is done: of two
# memory-bound configurations, the one that computes less is better.
ISSUE_SHARE = 0.02


@dataclass(frozen=True)
class Costs:
    """The fitted constants of ``estimate_gemm``, in cycles unless stated otherwise.

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


_COSTS = Costs()
# Fitted to the cycle model (scheduler/cycles) for f16 on gfx942: products of 1 to 8192 rows, and
# convolutions of 64 to 1280 channels (tests/benchmarks/cycles/shapes.toml).
_FITTED = {
    "gfx942": Costs(
        latency=840.0,
        window_saving=0.5,
        block_gap=380.0,
        barrier=2.0,
        exposed_pipes=0.68,
        spread=0.28,
        exposed_lds=0.61,
        lds=0.6,
        path=0.8,
        refetch=0.035,
        result=20.0,
        stores=0.5,
        partial=0.78,
        launch_us=1.0,
        start=3300.0,
        other_vgprs=70,
        wide_result=0.22,
        gemv_path=0.87,
        exposed=0.063,
    )
}


def costs_of(machine: Machine) -> Costs:
    """Return the costs fitted for the machine, or for its predecessor."""
    return _FITTED.get(machine.processor, _COSTS)


def has_wide_result_cost(machine: Machine) -> bool:
    """Whether the cost of 32x32 instructions is known."""
    return costs_of(machine).wide_result is not None


def partial_sums(config: GemmConfig, problem: GemmProblem) -> int:
    """Return the elements that go through memory, to be added by another kernel."""
    if config.stream_k:
        parts = config.stream_k + tile_count(config, problem) % config.stream_k
        return parts * config.block_m * config.block_n
    if config.split_k == 1:
        return 0
    return problem.batches * problem.m * problem.n * config.split_k
