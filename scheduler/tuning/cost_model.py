"""Estimates how long a kernel takes on a board (for the least time see ``roofline.py``).

``expected_ns`` is a model that ranks candidates before they are measured:

    time     = launches * LAUNCH + max(compute, memory, lds) / hiding / filling
    compute  = products of whole tiles / peak rate
    memory   = bytes that the blocks request / (bandwidth; the caches serve repeated bytes)
    lds      = bytes through LDS / (128 bytes per clock and compute unit: AMD instruction set
               architecture documents, "LDS" chapters: 32 banks of 4 bytes, twice on CDNA 3 and
               RDNA pairs; the lower figure is used for all)
    hiding   = min(1, waves per SIMD / 4): four waves hide the latency of each other's loads
    filling  = blocks / (rounds * resident blocks): the last round of blocks leaves units idle

Rates, clocks, bandwidth and caches are those of the board (sources: its file in ``targets/``);
waves per SIMD come from the build's registers and LDS, before the build from LDS alone. The
constants are common rules of thumb, not fitted: the model only orders the later measurements.

The size of the matrix instruction (``MATRIX_INSTR_NONKDIM``) changes none of these: both sizes
reach the peak rate (AMD Matrix Instruction Calculator: 32x32x8 f16 takes twice the cycles of
16x16x16, for twice the products), and with both a wave reads its rectangle of the tile once per
step and keeps it in registers. The differences (half the instructions to issue, other banks of LDS)
are left to the measurement. Sums of few rows (``GEMV``) use vector instructions for their products,
and no LDS.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from math import prod

from scheduler.build.model import Build
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.kernel import Launch
from scheduler.ir.bindings import Bindings
from scheduler.ir.dtypes import DType
from scheduler.ir.index.functions import evaluate
from scheduler.isa.occupancy import rules_of
from scheduler.targets import Board, Target, find
from scheduler.tuning.roofline import products_ns
from scheduler.tuning.work import Work

_LAUNCH_NS = 2000.0
_LDS_BYTES_PER_CLOCK = 128
_CACHE_SPEED = 4.0  # the caches' bandwidth over the memory's
_FULL_HIDING_WAVES = 4.0
_SPILL_COST = 2.0


def expected_ns(
    caller: TemplateCaller,
    work: Work,
    target: Target,
    bindings: Bindings,
    board: Board | None,
    build: Build | None = None,
) -> float | None:
    """Return the model's time of one call, in nanoseconds; None without a board.

    ``build`` refines it with what the compiler allocated.
    """
    rules = rules_of(target)
    if board is None or rules is None:
        return None
    scalars = dict(bindings) | caller.benchmark_request(target.name, bindings).numbers
    built = {} if build is None else build.resources
    total = 0.0
    for launch_number, launch in enumerate(caller.kernel.launches):
        blocks = prod(max(1, evaluate(size, scalars)) for size in launch.grid)
        if launch.function in built:
            waves = float(max(1, rules.waves(built[launch.function])))
        else:
            waves = rules.waves_before_build(prod(launch.block), launch.lds_bytes, target)
        # Launches after the first only add up partial results: they cost their memory traffic only.
        launch_work = work if launch_number == 0 else Work(0, 0, 0, "", 0)
        busiest_ns = _busiest_ns(caller, launch_work, scalars, blocks, board)
        total += _LAUNCH_NS + busiest_ns / _slot_utilization(
            launch, blocks, waves * rules.simds(target), board
        ) / min(1.0, waves / _FULL_HIDING_WAVES)
    if len(caller.kernel.launches) > 1:
        partial_bytes = evaluate(caller.kernel.workspace_bytes, scalars)
        total += 2e9 * partial_bytes / board.memory_bytes_per_s
    has_spills = any(rules.spills(resources) for resources in built.values())
    return total * (_SPILL_COST if has_spills else 1.0)


def _busiest_ns(
    caller: TemplateCaller, work: Work, scalars: Mapping[str, int], blocks: int, board: Board
) -> float:
    memory_ns = 1e9 * work.bytes / board.memory_bytes_per_s
    vector_ops_per_s = board.vector.get("f32", 128) * board.compute_units * board.clock_mhz * 1e6
    compute_ns = products_ns(work.matrix_flops, work.matrix_dtype, board)
    compute_ns += 1e9 * work.vector_ops / vector_ops_per_s
    config = caller.kernel.config
    if "BLOCK_M" not in config or not work.matrix_flops:
        return max(memory_ns, compute_ns)
    block_m, block_n = int(config["BLOCK_M"]), int(config["BLOCK_N"])
    steps: float = max(1, scalars.get("K", 1) // int(config.get("SPLIT_K", 1)))
    if config.get("STREAM_K"):  # the blocks divide all products among them
        steps = work.matrix_flops / (2.0 * blocks * block_m * block_n)
    # Operands of tf32 products are f32 in memory.
    dtype = DType.F32 if work.matrix_dtype == "tf32" else DType.from_label(work.matrix_dtype)
    compute_ns = products_ns(2.0 * blocks * block_m * block_n * steps, work.matrix_dtype, board)
    requested_bytes = (
        blocks * (block_m + block_n) * steps * dtype.itemsize
    )  # bytes, mostly from caches
    memory_ns = max(memory_ns, 1e9 * requested_bytes / (_CACHE_SPEED * board.memory_bytes_per_s))
    if config.get("GEMV"):
        products = blocks * block_m * block_n * steps
        return max(memory_ns, 1e9 * 2 * products / vector_ops_per_s)
    # Each of the (about square) groups of waves reads its own rows and columns of the tile.
    lds_bytes_per_s = _LDS_BYTES_PER_CLOCK * board.compute_units * board.clock_mhz * 1e6
    threads = prod(caller.kernel.launches[0].block)
    waves_across = max(1.0, math.sqrt(threads / find(board.target).wavefront))
    return max(
        compute_ns, memory_ns, 1e9 * requested_bytes * (1.0 + waves_across) / lds_bytes_per_s
    )


def _slot_utilization(launch: Launch, blocks: int, waves_per_unit: float, board: Board) -> float:
    """Return the share of the block slots, over all rounds, in which a block runs."""
    waves_per_block = max(1, -(-prod(launch.block) // find(board.target).wavefront))
    slots = board.compute_units * max(1, int(waves_per_unit / waves_per_block))
    rounds = -(-blocks // slots)
    if rounds > 1:
        return blocks / (rounds * slots)
    # One round: units without a block are idle, those with a few blocks share them well.
    return min(1.0, blocks / board.compute_units)
