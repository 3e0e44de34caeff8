"""Estimated time of a configuration of the matrix templates: for the default only; tuning measures.

Three models: one of a board's compute units, one of few rows that waves sum by vector instructions,
one of an SM with asynchronously copied tiles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import partial

from scheduler.arithmetic import ceil_div
from scheduler.codegen.rocm.gemm.config import (
    GemmConfig,
    lane_registers,
    tile_count,
    waves_along_m,
)
from scheduler.codegen.rocm.gemm.problem import GemmProblem
from scheduler.codegen.rocm.machine import Machine, machine_of, worst_ratios
from scheduler.matrix_instructions import COMMON_SIZE
from scheduler.targets import Target
from scheduler.targets.gemm_costs import ISSUE_SHARE
from scheduler.targets.model import hip_hardware

# Of ``estimate_gemm``: cycles of a compute unit, and bytes per cycle.
_LDS_BYTES = 128.0  # read or written
_L2_BYTES = 64.0  # per unit
_LINE_BYTES = 128
_LEAST_LOAD = 4.0  # cycles of the vector memory path for one instruction of a wave
_MEMORY_SHARE = 0.81  # attainable share of the published bandwidth
_SPREAD_RESULTS = 64  # of a lane at most: ``kSpreads`` of kiln/mma.h
_STREAMED_US = 20.0  # minimum of reading for which the fit to long reads on gfx1100 holds
_ONE_BUFFER = 0.05  # of the products' cycles, which LDS stores do not overlap (gfx1100)
_APART = 1.6  # for steps of shared tiles, each at another k: little of it is in L2
_DIRECT = 0.98  # for a step whose loads need no registers and are interleaved with the products
_CONFLICTING_ROW = 128  # bytes of an LDS row from which lanes of 32x32 instructions conflict
_CONFLICT = 2.0
_GEMV_LOADS, _GEMV_UNEVEN = 4, 0.01
_WIDE_STORE = 8  # bytes
_FMA_RATE = 128  # operations per cycle and unit if no rate is published
# Of ``estimate_gemv``.
_GEMV_LATENCY, _GEMV_START = 900.0, 3000.0
_GEMV_WAVES = 8  # of a SIMD at once
# Of ``estimate_async_gemm``, in nanoseconds: fitted to times of an H200 for bf16 at 4096x4096x4096,
# 1024x1024x1024 and 16x14336x4096 and for f32 at 2048x2048x2048.
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


def estimate_gemm(config: GemmConfig, problem: GemmProblem, machine: Machine) -> float:
    """Return microseconds of the whole product.

    The busiest compute unit's rounds of blocks; each step along k of the blocks that share it takes
    as long as the slowest of: matrix pipes, LDS and the path from L2, and a block's own waits. At
    least the memory time of operands and results. Parts of k are added by another kernel.

    If units are joined and reading takes longer than multiplying, blocks share the resources of all
    joined units, and their data arrives from memory meanwhile (fitted to the cycle model for f16
    products of 16 to 256 rows on gfx1100).
    """
    costs = machine.costs
    streams = machine.cus_per_wgp > 1 and _is_memory_bound(problem, machine)
    unit = machine.as_wgp() if streams else machine
    together, rounds = _occupancy(config, problem, unit)
    steps = ceil_div(ceil_div(problem.k, config.split_k), config.block_k)
    waves = config.threads // unit.wavefront
    area = config.block_m * config.block_n
    step = _step_cycles(config, problem, unit, together, streams=streams)
    result = costs.result * ((costs.wide_result or 1.0) if config.size != COMMON_SIZE else 1.0)
    finish = together * result * area / (config.threads * min(1.0, unit.simds / waves))
    between = costs.latency if together > 1 else costs.block_gap
    ends = rounds
    if config.stream_k:  # a block ends whole tiles, and its parts of shared ones
        whole, shared = divmod(tile_count(config, problem), config.stream_k)
        ends = ((whole + 1) * config.stream_k + shared) / (together * unit.units)
    cycles = costs.start + rounds * steps * step + ends * (finish + between)
    time_us = _bound_by_memory(cycles / unit.cycles_per_us, problem, unit)
    partial = _partial_sums(config, problem) * problem.element.product_sum.itemsize
    if not partial:
        return time_us
    return time_us + costs.launch_us + costs.partial * 2 * partial / unit.bytes_per_us


def _is_memory_bound(problem: GemmProblem, machine: Machine) -> bool:
    """Whether reading the operands from memory takes longer than multiplying them on all matrix
    pipes, and longer than the rest of the kernel. A convolution's windows overlap: they are read
    once."""
    if problem.masked_a or problem.masked_b:
        return False
    multiplied = 2.0 * problem.batches * problem.m * problem.n * problem.k
    rate = machine.rate * machine.units * machine.cycles_per_us
    return _read_us(problem, machine) > max(multiplied / rate, _STREAMED_US)


def _step_cycles(
    config: GemmConfig, problem: GemmProblem, machine: Machine, together: int, *, streams: bool
) -> float:
    """Return the cycles of a step along k of the blocks that share a compute unit; with
    ``streams``, the data that they wait for arrives from memory in parallel."""
    costs = machine.costs
    waves = config.threads // machine.wavefront
    busy = min(1.0, together * waves / machine.simds)
    area = config.block_m * config.block_n
    multiply = 2 * together * area * config.block_k / (machine.rate * busy)
    pipes = (
        costs.lds * _lds_cycles(config, problem, waves),
        costs.path * _load_cycles(config, problem, machine),
    )
    transfer = max(pipes) + costs.exposed_lds * min(pipes)
    transfer = transfer * together / (machine.cus_per_wgp if streams else 1)
    memory = together * _memory_cycles(config, problem, machine)
    if not streams:
        transfer = max(transfer, memory)
    # A block waits for loads that earlier steps have not issued; elements that windows share are
    # nearer.
    shared = 1 - _distinct_rows(problem, machine) / max(problem.m + problem.n, 1)
    ahead = max(1, config.stages - 1) if config.direct_to_lds else 1  # steps that a load has
    wait = costs.latency * (1 - costs.window_saving * shared) / ahead
    barriers = costs.barrier * (2 if config.stages == 1 else 1)
    alone = wait + barriers + multiply / together
    longest, other = max(multiply, transfer), min(multiply, transfer)
    exposed = min(1.0, costs.exposed_pipes * machine.simds / (together * waves))
    spreads = machine.spreads and config.stages == 1 and together * waves >= 2 * machine.simds
    if spreads and area <= _SPREAD_RESULTS * config.threads:
        exposed *= costs.spread
    step = max(longest + exposed * other, alone, memory) + ISSUE_SHARE * multiply
    if config.direct_to_lds:
        step *= _DIRECT
    if streams and config.stages == 1:
        step += _ONE_BUFFER * multiply
    # A unit with one block idles while the block's waves wait for each other.
    return step + (ISSUE_SHARE * barriers if together == 1 else 0.0)


def _occupancy(config: GemmConfig, problem: GemmProblem, machine: Machine) -> tuple[int, float]:
    """Return the blocks that a compute unit runs at once, and the number of rounds: a block begins
    as soon as another ends."""
    waves = config.threads // machine.wavefront
    registers = lane_registers(config, problem) + machine.costs.other_vgprs
    by_registers = machine.registers // registers * machine.simds // max(1, waves)
    fitting = max(1, min(machine.lds_bytes // config.lds_bytes(problem.element), by_registers))
    if config.stream_k:  # all at once, each as long as the others
        together = min(fitting, ceil_div(config.stream_k, machine.units))
        shared = tile_count(config, problem) % config.stream_k
        steps = tile_count(config, problem) + (_APART - 1) * shared
        return together, steps / (together * machine.units)
    per_unit = max(1, ceil_div(tile_count(config, problem) * config.split_k, machine.units))
    together = min(fitting, per_unit)
    return together, per_unit / together


def _lds_cycles(config: GemmConfig, problem: GemmProblem, waves: int) -> float:
    """Return LDS cycles of one block's step: both tiles are written once, and read by each wave
    that needs them."""
    along_m = max(1, waves_along_m(config.block_m, config.block_n, waves))
    along_n = max(1, waves // along_m)
    read = config.block_m * along_n + config.block_n * along_m
    rows = read + config.block_m + config.block_n
    row = config.block_k * problem.element.itemsize
    meet = config.size != COMMON_SIZE and row >= _CONFLICTING_ROW
    return rows * row / _LDS_BYTES * (_CONFLICT if meet else 1.0)


def _memory_cycles(config: GemmConfig, problem: GemmProblem, machine: Machine) -> float:
    """Return memory cycles of one block's step: data that no other block has brought to L2 comes
    from memory, and some of the rest too, since dies have caches of their own."""
    tiles_m, tiles_n = ceil_div(problem.m, config.block_m), ceil_div(problem.n, config.block_n)
    requested = max(1, tiles_n * problem.m + tiles_m * problem.n)
    refetch = machine.costs.refetch
    share = refetch + (1 - refetch) * _distinct_rows(problem, machine) / requested
    size = problem.element.itemsize
    blocks = tiles_m * tiles_n * problem.batches * config.split_k
    # Units without a block in the last round leave the others their bandwidth.
    busy = min(machine.units, blocks / ceil_div(blocks, machine.units)) if blocks else 1
    bytes_per_cycle = machine.bytes_per_us / machine.cycles_per_us / busy
    rows = sum(extent for extent, _ in _loaded_rows(config, problem))
    parts = 1 + machine.partial_lines * (_steps_per_line(config, size) - 1)
    return rows * _step_depth(config, problem) * size * share * parts / bytes_per_cycle


def _distinct_rows(problem: GemmProblem, machine: Machine) -> float:
    """Return the distinct rows of both operands in memory, of length k: windows share elements."""
    if machine.costs.stores is None:
        return problem.m + problem.n
    return problem.m * problem.distinct_a + problem.n * problem.distinct_b


def _loaded_rows(
    config: GemmConfig, problem: GemmProblem
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the rows of each tile that exist, since the others are masked, and elements per
    load."""
    return (
        (min(config.block_m, problem.m), config.vector_a),
        (min(config.block_n, problem.n), config.vector_b),
    )


def _step_depth(config: GemmConfig, problem: GemmProblem) -> int:
    """Return the depth of a step along k that exists."""
    return min(config.block_k, ceil_div(problem.k, config.split_k))


def _load_cycles(config: GemmConfig, problem: GemmProblem, machine: Machine) -> float:
    """Return load cycles of one block's step: an instruction with few bytes per lane takes full
    cycles."""
    size, cycles = problem.element.itemsize, 0.0
    unused = _steps_per_line(config, size)  # whole lines are fetched, rows run along k
    for rows, vector in _loaded_rows(config, problem):
        loads = rows * _step_depth(config, problem) / (vector * machine.wavefront)
        wide = machine.wavefront * vector * size * unused / _L2_BYTES
        cycles += loads * max(wide, _LEAST_LOAD)
    return cycles


def estimate_ratios(
    configs: Iterable[GemmConfig], problem: GemmProblem, targets: tuple[Target, ...]
) -> Mapping[GemmConfig, float]:
    """Return each configuration's estimated time relative to the best, on the target where that is
    highest."""
    return worst_ratios(configs, [partial(_estimate_us, problem, target) for target in targets])


def _estimate_us(problem: GemmProblem, target: Target, config: GemmConfig) -> float:
    """Return the estimate in microseconds."""
    if config.async_copies:
        room = hip_hardware(target).max_lds_per_block_bytes
        return estimate_async_gemm(config, problem, room) / 1e3
    estimate = estimate_gemv if config.gemv else estimate_gemm
    machine = machine_of(target, problem.element, allow_tf32=bool(config.allow_tf32))
    return estimate(config, problem, machine)


def estimate_gemv(config: GemmConfig, problem: GemmProblem, machine: Machine) -> float:
    """Return microseconds of few rows that waves sum by vector instructions: the memory time of the
    operands, or of the sums or one wave's steps if longer. Fitted to the cycle model: four loads of
    B in flight per wave are best, and results stored at least 8 bytes at once."""
    sums = problem.batches * ceil_div(problem.m, config.block_m) * config.block_m * problem.n
    computed = 2 * sums * problem.k / (_FMA_RATE * machine.units * machine.cycles_per_us)
    columns = config.block_n * machine.wavefront // config.threads
    loads = columns * config.block_k / (config.vector_b * machine.wavefront)
    # A wave's steps are sequential; each waits for all requests of its unit.
    tiles = ceil_div(problem.m, config.block_m) * ceil_div(problem.n, config.block_n)
    most = machine.simds * _GEMV_WAVES // (config.threads // machine.wavefront)
    together = min(ceil_div(problem.batches * tiles, machine.units), most)
    requested = together * (config.block_m + config.block_n) * config.block_k
    path = machine.costs.gemv_path * requested * problem.element.itemsize / _L2_BYTES
    waits = _GEMV_START + ceil_div(problem.k, config.block_k) * (_GEMV_LATENCY + path)
    computed = max(computed, waits / machine.cycles_per_us)
    narrow = columns * problem.element.itemsize < _WIDE_STORE
    uneven = abs(math.log2(loads / _GEMV_LOADS)) + 2 * narrow
    return _bound_by_memory(computed, problem, machine) * (1 + _GEMV_UNEVEN * uneven)


def estimate_async_gemm(config: GemmConfig, problem: GemmProblem, shared_bytes: int) -> float:
    """Return nanoseconds of the whole product on an SM's ``shared_bytes``, roughly.

    Rounds of blocks over the SMs, times k, times the maximum of: a warp's own wait, and the
    combined use of the multipliers and of shared memory by the SM's blocks; at least L2's time for
    all copies. Parts of k are stored and added by another kernel.
    """
    warps, area = config.threads // 32, config.block_m * config.block_n
    registers = min(_MAX_REGISTERS, area // config.threads + _OTHER_REGISTERS)
    fitting = min(
        shared_bytes // config.lds_bytes(problem.element),
        _REGISTERS // (registers * config.threads),
    )
    tiles = tile_count(config, problem)
    blocks = config.stream_k or tiles * config.split_k
    if not tiles:
        return 0.0
    together = max(1, min(fitting, ceil_div(blocks, _SMS)))
    rounds = ceil_div(blocks, _SMS * max(1, fitting))
    along_m = max(1, waves_along_m(config.block_m, config.block_n, warps))
    edges = config.block_m // along_m + config.block_n // (warps // along_m)
    shared = together * warps * edges * problem.element.itemsize / _SHARED_BYTES_PER_NS
    per_product = _PER_PRODUCT_TF32 if config.allow_tf32 else _PER_PRODUCT[problem.element.itemsize]
    multiplied = together * area * per_product
    alone = _ALONE + _ALONE_PER_ELEMENT * area / warps
    barriers = _BARRIER_NS / config.block_k if together == 1 else 0.0  # another block goes on
    shared_k = problem.k * tiles / config.stream_k if config.stream_k else 0.0
    k = shared_k or float(ceil_div(problem.k, config.split_k))
    computed = rounds * k * (max(alone, multiplied + shared) + barriers)
    copies = (
        (config.block_m + config.block_n) * config.block_k // (config.vector_a * config.threads)
    )
    if area // config.threads + _OTHER_REGISTERS + 2 * copies > _MAX_REGISTERS:
        computed *= _SPILLED
    operand_bytes = problem.batches * (problem.m + problem.n) * problem.k * problem.element.itemsize
    # Rows beyond the edge repeat the last one, which is cached.
    requested = min(config.block_m, problem.m) + min(config.block_n, problem.n)
    requested *= (config.stages - 1) * config.block_k * problem.element.itemsize
    under_way = min(blocks / _SMS, max(1, fitting)) * requested
    read_rate = _READ_BYTES_PER_NS * min(1.0, under_way / _UNDER_WAY)
    copied = blocks * k * (config.block_m + config.block_n) * problem.element.itemsize
    read = operand_bytes / read_rate
    time = max(computed, read, copied / _COPIED_BYTES_PER_NS)
    time += ISSUE_SHARE * read  # of equals, the one that has more in flight
    partial = _partial_sums(config, problem)
    if not partial:
        return time
    return time + _LAUNCH + 2 * partial * problem.element.product_sum.itemsize / _BYTES_PER_NS


def _bound_by_memory(computed: float, problem: GemmProblem, machine: Machine) -> float:
    """Return microseconds, at least the memory time of operands and results; of two memory-bound
    configurations, the one that computes less is better."""
    size, costs = problem.element.itemsize, machine.costs
    stores = costs.stores
    rate = _MEMORY_SHARE * machine.bytes_per_us
    read = _read_us(problem, machine)
    written = problem.batches * problem.m * problem.n * size / rate if stores else 0.0
    time = max(computed + (stores or 0.0) * written, read + written)
    return time + costs.exposed * min(computed, read)


def _read_us(problem: GemmProblem, machine: Machine) -> float:
    """Return microseconds to read the operands from memory, each element once."""
    operand_bytes = (
        problem.batches * _distinct_rows(problem, machine) * problem.k * problem.element.itemsize
    )
    return operand_bytes / (_MEMORY_SHARE * machine.bytes_per_us)


def _steps_per_line(config: GemmConfig, size: int) -> float:
    """Return the steps along k that share a cache line, for elements of ``size`` bytes."""
    return max(1.0, _LINE_BYTES / (config.block_k * size))


def _partial_sums(config: GemmConfig, problem: GemmProblem) -> int:
    """Return the elements that go through memory, to be added by another kernel."""
    if config.stream_k:
        parts = config.stream_k + tile_count(config, problem) % config.stream_k
        return parts * config.block_m * config.block_n
    if config.split_k == 1:
        return 0
    return problem.batches * problem.m * problem.n * config.split_k
