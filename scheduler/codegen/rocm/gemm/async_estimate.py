"""Estimated time of asynchronously copied tiles on an SM of an NVIDIA GPU: for the default only;
tuning measures."""

from __future__ import annotations

from scheduler.arithmetic import ceil_div
from scheduler.codegen.rocm.gemm.config import GemmConfig, GemmProblem, tile_count, waves_along_m
from scheduler.codegen.rocm.gemm.costs import partial_sums
from scheduler.targets.gemm_costs import ISSUE_SHARE

# Fitted to times of an H200 for bf16 at 4096x4096x4096, 1024x1024x1024 and 16x14336x4096 and for
# f32 at 2048x2048x2048; nanoseconds.
_SMS = 132
_REGISTERS, _MAX_REGISTERS = 65536, 255  # of an SM; of a thread
_OTHER_REGISTERS = 100  # of a thread besides its accumulators and the addresses of its copies
_SPILLED = 1.2
_SHARED_BYTES_PER_NS = 240.0
# By bytes per element; for one byte: half of the time of two bytes, not measured.
_PER_PRODUCT = {1: 0.00020, 2: 0.00040, 4: 0.0055, 8: 0.0110}
_PER_PRODUCT_TF32 = 0.00080  # half the rate of two bytes, not measured
_ALONE, _ALONE_PER_ELEMENT = 8.0, 0.0035  # a warp's step along k, with no other warp to overlap
_BARRIER_NS = 100.0
_LAUNCH, _BYTES_PER_NS = 8000.0, 2500.0
_READ_BYTES_PER_NS = 4000.0  # for data that is read once
_UNDER_WAY = 64 * 1024  # bytes in flight per SM at that rate (measured at 1 to 64 rows)
_COPIED_BYTES_PER_NS = 5000.0  # from L2, all SMs together: not measured; at most 6100 was reached


def estimate_async_gemm(config: GemmConfig, problem: GemmProblem, shared_bytes: int) -> float:
    """Return nanoseconds of the whole product on an SM's ``shared_bytes``, roughly.

    Rounds of blocks over the SMs, times k, times the maximum of: a warp's own wait, and the
    combined use of the multipliers and of shared memory by the SM's blocks; at least L2's time for
    all copies. Parts of k are stored and added by another kernel.
    """
    warps, area = config.threads // 32, config.block_m * config.block_n
    registers = min(_MAX_REGISTERS, area // config.threads + _OTHER_REGISTERS)
    held = min(
        shared_bytes // config.lds_bytes(problem.element),
        _REGISTERS // (registers * config.threads),
    )
    tiles = tile_count(config, problem)
    blocks = config.stream_k or tiles * config.split_k
    if not tiles:
        return 0.0
    together = max(1, min(held, ceil_div(blocks, _SMS)))
    rounds = ceil_div(blocks, _SMS * max(1, held))
    along_m = max(1, waves_along_m(config.block_m, config.block_n, warps))
    edges = config.block_m // along_m + config.block_n // (warps // along_m)
    shared = together * warps * edges * problem.element.itemsize / _SHARED_BYTES_PER_NS
    each = _PER_PRODUCT_TF32 if config.allow_tf32 else _PER_PRODUCT[problem.element.itemsize]
    multiplied = together * area * each
    alone = _ALONE + _ALONE_PER_ELEMENT * area / warps
    barriers = _BARRIER_NS / config.block_k if together == 1 else 0.0  # another block goes on
    shared_out = problem.k * tiles / config.stream_k if config.stream_k else 0.0
    k = shared_out or float(ceil_div(problem.k, config.split_k))
    computed = rounds * k * (max(alone, multiplied + shared) + barriers)
    copies = (
        (config.block_m + config.block_n) * config.block_k // (config.vector_a * config.threads)
    )
    if area // config.threads + _OTHER_REGISTERS + 2 * copies > _MAX_REGISTERS:
        computed *= _SPILLED
    given = problem.batches * (problem.m + problem.n) * problem.k * problem.element.itemsize
    # Rows beyond the edge repeat the last one, which is cached.
    asked = min(config.block_m, problem.m) + min(config.block_n, problem.n)
    asked *= (config.stages - 1) * config.block_k * problem.element.itemsize
    under_way = min(blocks / _SMS, max(1, held)) * asked
    read_rate = _READ_BYTES_PER_NS * min(1.0, under_way / _UNDER_WAY)
    copied = blocks * k * (config.block_m + config.block_n) * problem.element.itemsize
    read = given / read_rate
    time = max(computed, read, copied / _COPIED_BYTES_PER_NS)
    time += ISSUE_SHARE * read  # of equals, the one that has more in flight
    partial = partial_sums(config, problem)
    if not partial:
        return time
    return time + _LAUNCH + 2 * partial * problem.element.product_sum.itemsize / _BYTES_PER_NS
