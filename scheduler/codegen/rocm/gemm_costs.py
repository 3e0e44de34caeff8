"""What estimates of matrix products count, and what of it was fitted to a board."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.codegen.rocm.gemm_config import GemmConfig, GemmProblem, tile_count
from scheduler.codegen.rocm.machine import Machine

# Of the matrix pipes' cycles, or of reading, in which nothing else is done: of two configurations
# that wait for memory alone, the one that computes less.
ISSUE_SHARE = 0.02


@dataclass(frozen=True)
class Costs:
    """What of ``estimate`` was fitted, in cycles where nothing else is said.

    ``latency`` is of a load from memory, and until what it brought can be multiplied, ``near``
    what of it those of elements that windows share are spared; ``between`` from a block's last
    step to the first of the next one where no other goes on meanwhile. ``second`` is what of the
    shorter of both, matrix pipes and the rest, a SIMD's only wave does not hide; ``spread`` of
    that where reads and loads stand one by one among the products; ``beside`` of the shorter of
    LDS and the path from L2. ``lds`` and ``path`` are of their own cycles, ``again`` of what
    another block has fetched. ``result`` is what a wave takes for each of its lane's results,
    ``wide_result`` of that with 32x32 instructions (None: no difference is known, and they are not
    tried). ``stores`` is what of their time in memory is not hidden (None: that was fitted without
    them, and without what windows share), ``partial`` the same of parts of k, which a launch of
    ``launch_us`` more adds; ``exposed`` of the shorter of computing and reading. ``other_vgprs``
    are of a lane beside accumulators and the next tile. ``gemv_path`` is of the cycles of the path
    from L2 that a step of few rows waits for.
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
    """Those that were fitted for it, or for what came before."""
    return _FITTED.get(machine.processor, _COSTS)


def has_wide_result_cost(machine: Machine) -> bool:
    """Whether what 32x32 instructions take is known."""
    return costs_of(machine).wide_result is not None


def partial_sums(config: GemmConfig, problem: GemmProblem) -> int:
    """Elements that go through memory, to be added by another kernel."""
    if config.stream_k:
        parts = config.stream_k + tile_count(config, problem) % config.stream_k
        return parts * config.block_m * config.block_n
    if config.split_k == 1:
        return 0
    return problem.batches * problem.m * problem.n * config.split_k
