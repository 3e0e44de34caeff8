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

# Of ``estimate_gemm_us``: cycles of a compute unit, and bytes per cycle.
_LDS_BYTES_PER_CYCLE = 128.0  # read or written
_L2_BYTES_PER_CYCLE = 64.0  # per unit
_LINE_BYTES = 128
_MIN_LOAD_CYCLES = 4.0  # of the vector memory path for one instruction of a wave
_MEMORY_SHARE = 0.81  # attainable share of the published bandwidth
_MAX_SPREAD_RESULTS = 64  # of a lane: ``kSpreads`` of kiln/mma.h
_MIN_STREAMED_US = 20.0  # of reading, for which the fit to long reads on gfx1100 holds
_SINGLE_BUFFER_SHARE = 0.05  # of the products' cycles, which LDS stores do not overlap (gfx1100)
_SHARED_TILE_FACTOR = 1.6  # for steps of shared tiles, each at another k: L2 holds little
# For a step whose loads need no registers and are interleaved with the products.
_DIRECT_LOAD_FACTOR = 0.98
_CONFLICTING_ROW_BYTES = 128  # of LDS, from which lanes of 32x32 instructions conflict
_CONFLICT_FACTOR = 2.0
_BEST_GEMV_LOADS, _GEMV_PENALTY = 4, 0.01
_WIDE_STORE_BYTES = 8
_FMA_OPS_PER_CYCLE = 128  # of a unit, if no rate is published
# Of ``estimate_gemv_us``.
_GEMV_STEP_CYCLES, _GEMV_LAUNCH_CYCLES = 900.0, 3000.0
_MAX_GEMV_WAVES = 8  # of a SIMD at once
# Of ``estimate_async_gemm_ns``: fitted to times of an H200 for bf16 at 4096x4096x4096,
# 1024x1024x1024 and 16x14336x4096 and for f32 at 2048x2048x2048.
_SM_COUNT = 132
_SM_REGISTERS, _MAX_THREAD_REGISTERS = 65536, 255
_OTHER_REGISTERS = 100  # of a thread besides its accumulators and the addresses of its copies
_SPILL_FACTOR = 1.2
_SHARED_BYTES_PER_NS = 240.0
# By bytes per element; for one byte: half of the time of two bytes, not measured.
_NS_PER_PRODUCT = {1: 0.00020, 2: 0.00040, 4: 0.0055, 8: 0.0110}
_NS_PER_TF32_PRODUCT = 0.00080  # half the rate of two bytes, not measured
_WARP_NS, _WARP_NS_PER_ELEMENT = 8.0, 0.0035  # a warp's step along k, with no other warp to overlap
_BARRIER_NS = 100.0
_LAUNCH_NS, _PARTIAL_BYTES_PER_NS = 8000.0, 2500.0
_READ_BYTES_PER_NS = 4000.0  # for data that is read once
_SM_BYTES_IN_FLIGHT = 64 * 1024  # at that rate (measured at 1 to 64 rows)
_L2_BYTES_PER_NS = 5000.0  # all SMs together: not measured; at most 6100 was reached


def estimate_gemm_us(config: GemmConfig, problem: GemmProblem, machine: Machine) -> float:
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
    resident, rounds = _occupancy(config, problem, unit)
    steps = ceil_div(ceil_div(problem.k, config.split_k), config.block_k)
    waves = config.threads // unit.wavefront
    area = config.block_m * config.block_n
    step_cycles = _step_cycles(config, problem, unit, resident, streams=streams)
    wide_factor = (costs.wide_result or 1.0) if config.size != COMMON_SIZE else 1.0
    finish_cycles = resident * (costs.result * wide_factor) * area
    finish_cycles /= config.threads * min(1.0, unit.simds / waves)
    gap_cycles = costs.latency if resident > 1 else costs.block_gap
    block_ends = rounds
    if config.stream_k:  # a block ends whole tiles, and its parts of shared ones
        whole_tiles, shared_tiles = divmod(tile_count(config, problem), config.stream_k)
        block_ends = (whole_tiles + 1) * config.stream_k + shared_tiles
        block_ends /= resident * unit.units
    cycles = costs.start + rounds * steps * step_cycles + block_ends * (finish_cycles + gap_cycles)
    time_us = _bound_by_memory(cycles / unit.cycles_per_us, problem, unit)
    partial_bytes = _partial_sums(config, problem) * problem.element.product_sum.itemsize
    if not partial_bytes:
        return time_us
    return time_us + costs.launch_us + costs.partial * 2 * partial_bytes / unit.bytes_per_us


def _is_memory_bound(problem: GemmProblem, machine: Machine) -> bool:
    """Whether reading the operands from memory takes longer than multiplying them on all matrix
    pipes, and longer than the rest of the kernel. A convolution's windows overlap: they are read
    once."""
    if problem.masked_a or problem.masked_b:
        return False
    operations = 2.0 * problem.batches * problem.m * problem.n * problem.k
    operations_per_us = machine.rate * machine.units * machine.cycles_per_us
    return _read_us(problem, machine) > max(operations / operations_per_us, _MIN_STREAMED_US)


def _step_cycles(
    config: GemmConfig, problem: GemmProblem, machine: Machine, resident: int, *, streams: bool
) -> float:
    """Return the cycles of a step along k of the ``resident`` blocks that share a compute unit;
    with ``streams``, the data that they wait for arrives from memory in parallel."""
    costs = machine.costs
    waves = config.threads // machine.wavefront
    busy_share = min(1.0, resident * waves / machine.simds)
    area = config.block_m * config.block_n
    multiply_cycles = 2 * resident * area * config.block_k / (machine.rate * busy_share)
    block_pipe_cycles = (
        costs.lds * _lds_cycles(config, problem, waves),
        costs.path * _load_cycles(config, problem, machine),
    )
    transfer_cycles = max(block_pipe_cycles) + costs.exposed_lds * min(block_pipe_cycles)
    transfer_cycles = transfer_cycles * resident / (machine.cus_per_wgp if streams else 1)
    memory_cycles = resident * _memory_cycles(config, problem, machine)
    if not streams:
        transfer_cycles = max(transfer_cycles, memory_cycles)
    # A block waits for loads that earlier steps have not issued; elements that windows share are
    # nearer.
    shared_share = 1 - _distinct_rows(problem, machine) / max(problem.m + problem.n, 1)
    steps_ahead = max(1, config.stages - 1) if config.direct_to_lds else 1  # steps that a load has
    wait_cycles = costs.latency * (1 - costs.window_saving * shared_share) / steps_ahead
    barrier_cycles = costs.barrier * (2 if config.stages == 1 else 1)
    block_cycles = wait_cycles + barrier_cycles + multiply_cycles / resident
    shorter, longer = sorted((multiply_cycles, transfer_cycles))
    exposed_share = min(1.0, costs.exposed_pipes * machine.simds / (resident * waves))
    fills_simds = resident * waves >= 2 * machine.simds
    can_spread = machine.spreads and config.stages == 1 and fills_simds
    if can_spread and area <= _MAX_SPREAD_RESULTS * config.threads:
        exposed_share *= costs.spread
    step_cycles = max(longer + exposed_share * shorter, block_cycles, memory_cycles)
    step_cycles += ISSUE_SHARE * multiply_cycles
    if config.direct_to_lds:
        step_cycles *= _DIRECT_LOAD_FACTOR
    if streams and config.stages == 1:
        step_cycles += _SINGLE_BUFFER_SHARE * multiply_cycles
    # A unit with one block idles while the block's waves wait for each other.
    return step_cycles + (ISSUE_SHARE * barrier_cycles if resident == 1 else 0.0)


def _occupancy(config: GemmConfig, problem: GemmProblem, machine: Machine) -> tuple[int, float]:
    """Return the blocks that a compute unit runs at once, and the number of rounds: a block begins
    as soon as another ends."""
    waves = config.threads // machine.wavefront
    registers = lane_registers(config, problem) + machine.costs.other_vgprs
    max_by_registers = machine.registers // registers * machine.simds // max(1, waves)
    max_by_lds = machine.lds_bytes // config.lds_bytes(problem.element)
    max_blocks = max(1, min(max_by_lds, max_by_registers))
    if config.stream_k:  # all blocks run at once, and take equally long
        resident = min(max_blocks, ceil_div(config.stream_k, machine.units))
        shared_tiles = tile_count(config, problem) % config.stream_k
        weighted_tiles = tile_count(config, problem) + (_SHARED_TILE_FACTOR - 1) * shared_tiles
        return resident, weighted_tiles / (resident * machine.units)
    blocks_per_unit = max(1, ceil_div(tile_count(config, problem) * config.split_k, machine.units))
    resident = min(max_blocks, blocks_per_unit)
    return resident, blocks_per_unit / resident


def _lds_cycles(config: GemmConfig, problem: GemmProblem, waves: int) -> float:
    """Return LDS cycles of one block's step: both tiles are written once, and read by each wave
    that needs them."""
    along_m = max(1, waves_along_m(config.block_m, config.block_n, waves))
    along_n = max(1, waves // along_m)
    read_rows = config.block_m * along_n + config.block_n * along_m
    moved_rows = read_rows + config.block_m + config.block_n
    row_bytes = config.block_k * problem.element.itemsize
    conflicts = config.size != COMMON_SIZE and row_bytes >= _CONFLICTING_ROW_BYTES
    return moved_rows * row_bytes / _LDS_BYTES_PER_CYCLE * (_CONFLICT_FACTOR if conflicts else 1.0)


def _memory_cycles(config: GemmConfig, problem: GemmProblem, machine: Machine) -> float:
    """Return memory cycles of one block's step: data that no other block has brought to L2 comes
    from memory, and some of the other data too, since each die has its own cache."""
    tiles_m, tiles_n = ceil_div(problem.m, config.block_m), ceil_div(problem.n, config.block_n)
    requested_rows = max(1, tiles_n * problem.m + tiles_m * problem.n)
    refetch = machine.costs.refetch
    memory_share = refetch + (1 - refetch) * _distinct_rows(problem, machine) / requested_rows
    itemsize = problem.element.itemsize
    blocks = tiles_m * tiles_n * problem.batches * config.split_k
    # Units without a block in the last round leave the others their bandwidth.
    busy_units = min(machine.units, blocks / ceil_div(blocks, machine.units)) if blocks else 1
    bytes_per_cycle = machine.bytes_per_us / machine.cycles_per_us / busy_units
    loaded_rows = sum(extent for extent, _ in _loaded_rows(config, problem))
    fetches_per_line = 1 + machine.partial_lines * (_steps_per_line(config, itemsize) - 1)
    tile_bytes = loaded_rows * _step_depth(config, problem) * itemsize
    return tile_bytes * memory_share * fetches_per_line / bytes_per_cycle


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
    itemsize, cycles = problem.element.itemsize, 0.0
    steps_per_line = _steps_per_line(config, itemsize)  # whole lines are fetched, rows run along k
    for rows, vector in _loaded_rows(config, problem):
        loads = rows * _step_depth(config, problem) / (vector * machine.wavefront)
        line_cycles = machine.wavefront * vector * itemsize * steps_per_line / _L2_BYTES_PER_CYCLE
        cycles += loads * max(line_cycles, _MIN_LOAD_CYCLES)
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
        shared_bytes = hip_hardware(target).max_lds_per_block_bytes
        return estimate_async_gemm_ns(config, problem, shared_bytes) / 1e3
    estimate_us = estimate_gemv_us if config.gemv else estimate_gemm_us
    machine = machine_of(target, problem.element, allow_tf32=bool(config.allow_tf32))
    return estimate_us(config, problem, machine)


def estimate_gemv_us(config: GemmConfig, problem: GemmProblem, machine: Machine) -> float:
    """Return microseconds of few rows that waves sum by vector instructions: the memory time of the
    operands, or of the sums or one wave's steps if longer. Fitted to the cycle model: four loads of
    B in flight per wave are best, and results stored at least 8 bytes at once."""
    sum_count = problem.batches * ceil_div(problem.m, config.block_m) * config.block_m * problem.n
    operations_per_us = _FMA_OPS_PER_CYCLE * machine.units * machine.cycles_per_us
    multiply_us = 2 * sum_count * problem.k / operations_per_us
    columns = config.block_n * machine.wavefront // config.threads
    loads = columns * config.block_k / (config.vector_b * machine.wavefront)
    # A wave's steps are sequential; each waits for all requests of its unit.
    tiles = ceil_div(problem.m, config.block_m) * ceil_div(problem.n, config.block_n)
    max_blocks = machine.simds * _MAX_GEMV_WAVES // (config.threads // machine.wavefront)
    resident = min(ceil_div(problem.batches * tiles, machine.units), max_blocks)
    requested_elements = resident * (config.block_m + config.block_n) * config.block_k
    itemsize = problem.element.itemsize
    path_cycles = machine.costs.gemv_path * requested_elements * itemsize / _L2_BYTES_PER_CYCLE
    steps = ceil_div(problem.k, config.block_k)
    wait_cycles = _GEMV_LAUNCH_CYCLES + steps * (_GEMV_STEP_CYCLES + path_cycles)
    compute_us = max(multiply_us, wait_cycles / machine.cycles_per_us)
    has_narrow_stores = columns * itemsize < _WIDE_STORE_BYTES
    unevenness = abs(math.log2(loads / _BEST_GEMV_LOADS)) + 2 * has_narrow_stores
    return _bound_by_memory(compute_us, problem, machine) * (1 + _GEMV_PENALTY * unevenness)


def estimate_async_gemm_ns(config: GemmConfig, problem: GemmProblem, shared_bytes: int) -> float:
    """Return nanoseconds of the whole product on an SM's ``shared_bytes``, roughly.

    Rounds of blocks over the SMs, times k, times the maximum of: a warp's own wait, and the
    combined use of the multipliers and of shared memory by the SM's blocks; at least L2's time for
    all copies. Parts of k are stored and added by another kernel.
    """
    itemsize = problem.element.itemsize
    warps, tile_area = config.threads // 32, config.block_m * config.block_n
    registers = min(_MAX_THREAD_REGISTERS, tile_area // config.threads + _OTHER_REGISTERS)
    max_blocks = min(
        shared_bytes // config.lds_bytes(problem.element),
        _SM_REGISTERS // (registers * config.threads),
    )
    tiles = tile_count(config, problem)
    blocks = config.stream_k or tiles * config.split_k
    if not tiles:
        return 0.0
    resident = max(1, min(max_blocks, ceil_div(blocks, _SM_COUNT)))
    rounds = ceil_div(blocks, _SM_COUNT * max(1, max_blocks))
    along_m = max(1, waves_along_m(config.block_m, config.block_n, warps))
    read_rows = config.block_m // along_m + config.block_n // (warps // along_m)
    shared_ns = resident * warps * read_rows * itemsize / _SHARED_BYTES_PER_NS
    ns_per_product = _NS_PER_TF32_PRODUCT if config.allow_tf32 else _NS_PER_PRODUCT[itemsize]
    multiply_ns = resident * tile_area * ns_per_product
    warp_ns = _WARP_NS + _WARP_NS_PER_ELEMENT * tile_area / warps
    # Another block continues meanwhile, if there is one.
    barrier_ns = _BARRIER_NS / config.block_k if resident == 1 else 0.0
    shared_k = problem.k * tiles / config.stream_k if config.stream_k else 0.0
    depth = shared_k or float(ceil_div(problem.k, config.split_k))
    compute_ns = rounds * depth * (max(warp_ns, multiply_ns + shared_ns) + barrier_ns)
    tile_rows = config.block_m + config.block_n
    copies = tile_rows * config.block_k // (config.vector_a * config.threads)
    if tile_area // config.threads + _OTHER_REGISTERS + 2 * copies > _MAX_THREAD_REGISTERS:
        compute_ns *= _SPILL_FACTOR
    operand_bytes = problem.batches * (problem.m + problem.n) * problem.k * itemsize
    # Rows beyond the edge repeat the last one, which is cached.
    requested_rows = min(config.block_m, problem.m) + min(config.block_n, problem.n)
    requested_bytes = requested_rows * (config.stages - 1) * config.block_k * itemsize
    bytes_in_flight = min(blocks / _SM_COUNT, max(1, max_blocks)) * requested_bytes
    read_bytes_per_ns = _READ_BYTES_PER_NS * min(1.0, bytes_in_flight / _SM_BYTES_IN_FLIGHT)
    copied_bytes = blocks * depth * tile_rows * itemsize
    read_ns = operand_bytes / read_bytes_per_ns
    time_ns = max(compute_ns, read_ns, copied_bytes / _L2_BYTES_PER_NS)
    time_ns += ISSUE_SHARE * read_ns  # of equals, the one that has more in flight
    partial_sums = _partial_sums(config, problem)
    if not partial_sums:
        return time_ns
    partial_bytes = partial_sums * problem.element.product_sum.itemsize
    return time_ns + _LAUNCH_NS + 2 * partial_bytes / _PARTIAL_BYTES_PER_NS


def _bound_by_memory(compute_us: float, problem: GemmProblem, machine: Machine) -> float:
    """Return microseconds, at least the memory time of operands and results; of two memory-bound
    configurations, the one that computes less is better."""
    store_share = machine.costs.stores
    read_us, write_us = _read_us(problem, machine), 0.0
    if store_share:
        result_bytes = problem.batches * problem.m * problem.n * problem.element.itemsize
        write_us = result_bytes / (_MEMORY_SHARE * machine.bytes_per_us)
    time_us = max(compute_us + (store_share or 0.0) * write_us, read_us + write_us)
    return time_us + machine.costs.exposed * min(compute_us, read_us)


def _read_us(problem: GemmProblem, machine: Machine) -> float:
    """Return microseconds to read the operands from memory, each element once."""
    operand_bytes = (
        problem.batches * _distinct_rows(problem, machine) * problem.k * problem.element.itemsize
    )
    return operand_bytes / (_MEMORY_SHARE * machine.bytes_per_us)


def _steps_per_line(config: GemmConfig, itemsize: int) -> float:
    """Return the steps along k that share a cache line, for elements of ``itemsize`` bytes."""
    return max(1.0, _LINE_BYTES / (config.block_k * itemsize))


def _partial_sums(config: GemmConfig, problem: GemmProblem) -> int:
    """Return the elements that go through memory, to be added by another kernel."""
    if config.stream_k:
        partial_tiles = config.stream_k + tile_count(config, problem) % config.stream_k
        return partial_tiles * config.block_m * config.block_n
    if config.split_k == 1:
        return 0
    return problem.batches * problem.m * problem.n * config.split_k
