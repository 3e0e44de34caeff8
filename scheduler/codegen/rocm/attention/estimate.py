"""Estimated time of an attention configuration on AMD CDNA GPUs: for the default only; tuning
measures.

Constants were fitted to the cycle model (scheduler/cycles) for f16 heads of 40 to 256 on gfx942: 1
to 16 queries over 512 to 16384 keys, and 256 to 4096 queries.
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.arithmetic import ceil_div
from scheduler.codegen.rocm.attention.shape import AttentionConfig, AttentionShape
from scheduler.codegen.rocm.machine import Machine
from scheduler.targets.amd import AmdHardware

# Cycles of a wave or a compute unit, and bytes moved per cycle.
_LDS_BYTES_PER_CYCLE = 128.0
_PACK_BYTES = 16
_LATENCY_CYCLES = 500.0  # until a block's first tile arrives
_TILE_CYCLES = 730.0  # a wave's step from tile to tile, besides the costs below
_PACK_CYCLES = 22.0  # a wave's load of 16 bytes per lane, and its store to LDS
_SCORE_INSTRUCTIONS = 1.1  # per score of a lane, besides those of ``_TILE_CYCLES``
_SIMD_LANES_PER_CYCLE = 16
# Part of the shorter of matrix and vector pipes that other waves do not hide.
_EXPOSED_PIPE_SHARE = 0.04
_BARRIER_CYCLES = 940.0  # several waves wait for each other
# A SIMD has one wave because of its registers, and some need moves to reach.
_SINGLE_WAVE_FACTOR = 1.5
_LAUNCH_CYCLES = 4370.0
_MEAN_STEPS_RATIO = 0.7  # mean steps of uneven blocks, relative to the longest
_MEMORY_SHARE = 0.81  # attainable share of the published bandwidth
_EXPOSED_TIME_SHARE = 0.46  # exposed part of the shorter of computing and memory
_COMBINE_US = 0.6  # the launch that combines partial results
_COMBINE_ROUND_US = 0.02  # each round of combining them
_PARTIALS_PER_ROUND = 8  # partial results that lanes combine side by side at once
# With more partial results, the later ones cost another wait.
_MAX_PARTIALS_PER_WAIT, _EXTRA_WAIT_US = 32, 0.7
_PARTIALS_TIME_SHARE = 0.5  # part of the time that partial results would take in memory
_PENALTY_PER_SPLIT = 0.001  # per split, without clear gain (gfx90a: 64 were 7% slower than 16)


@dataclass(frozen=True)
class AttentionProblem:
    """``batch`` heads of ``rows`` queries over ``columns`` keys; ``uneven``: rows see different
    numbers of keys (causal attention)."""

    batch: int
    rows: int
    columns: int
    uneven: bool


def estimate_attention(
    config: AttentionConfig,
    problem: AttentionProblem,
    shape: AttentionShape,
    gpu: AmdHardware,
    machine: Machine,
) -> float:
    """Return microseconds: the busiest unit's blocks in sequence, with one step per tile, at least
    the memory time; another launch combines the blocks' partial results."""
    blocks = problem.batch * ceil_div(problem.rows, config.block_m) * config.splits
    blocks_at_once, rounds = _occupancy(config, problem, shape, gpu, machine, blocks)
    tiles = max(ceil_div(ceil_div(problem.columns, config.block_n), config.splits), 1)
    tile_cycles = _tile_cycles(config, shape, gpu, machine, blocks_at_once)
    cycles = _LAUNCH_CYCLES + rounds * (_LATENCY_CYCLES + tiles * tile_cycles)
    compute_us = cycles / machine.cycles_per_us
    elements = problem.batch * (problem.rows + problem.columns)
    operand_bytes = elements * (shape.depth + shape.value_depth) * shape.element.itemsize
    read_us = operand_bytes / (_MEMORY_SHARE * machine.bytes_per_us)
    # The first tile is waited for, and nothing is computed meanwhile.
    exposed_share = max(_EXPOSED_TIME_SHARE, 1 / tiles)
    time_us = max(compute_us, read_us) + exposed_share * min(compute_us, read_us)
    if config.splits == 1:
        return time_us
    partial_results = config.splits * problem.batch * problem.rows * (shape.value_depth + 2)
    partials_us = 2 * partial_results * shape.element.compute_dtype.itemsize / machine.bytes_per_us
    combine_us = _COMBINE_US + _PARTIALS_TIME_SHARE * partials_us
    combine_us += _COMBINE_ROUND_US * config.splits / _PARTIALS_PER_ROUND
    combine_us += _EXTRA_WAIT_US if config.splits > _MAX_PARTIALS_PER_WAIT else 0.0
    return (time_us + combine_us) * (1 + _PENALTY_PER_SPLIT * config.splits)


def _occupancy(
    config: AttentionConfig,
    problem: AttentionProblem,
    shape: AttentionShape,
    gpu: AmdHardware,
    machine: Machine,
    blocks: int,
) -> tuple[int, float]:
    """Return how many blocks a unit runs at once, and the number of rounds, each as long as the
    longest block; uneven blocks start with the longest and fill the unit according to their
    mean."""
    queries_in_lds = shape.queries_in_lds(config, (gpu,))
    ahead = shape.ahead(config, (gpu,))
    registers = max(shape.registers(config, gpu, queries=not queries_in_lds, ahead=ahead), 1)
    waves = config.threads // gpu.wavefront
    max_by_registers = machine.registers // registers * machine.simds // waves
    max_by_lds = machine.lds_bytes // shape.lds_bytes(config, gpu, queries=queries_in_lds)
    blocks_per_unit = max(1, ceil_div(blocks, machine.units))
    blocks_at_once = min(max(1, min(max_by_lds, max_by_registers)), blocks_per_unit)
    if problem.uneven:
        return blocks_at_once, max(1.0, blocks_per_unit / blocks_at_once * _MEAN_STEPS_RATIO)
    return blocks_at_once, ceil_div(blocks_per_unit, blocks_at_once)


def _tile_cycles(
    config: AttentionConfig,
    shape: AttentionShape,
    gpu: AmdHardware,
    machine: Machine,
    blocks_at_once: int,
) -> float:
    """Return the cycles of a tile for the blocks that share a unit: a wave's own time, or their
    combined use of matrix pipes, vector pipes and LDS."""
    waves = config.threads // gpu.wavefront
    wave_rows, depth_sum = config.block_m // waves, shape.padded_depth + shape.padded_value_depth
    tile_bytes = config.block_n * depth_sum * shape.element.itemsize
    matrix_cycles = 2 * wave_rows * config.block_n * depth_sum * machine.simds / machine.rate
    packs_per_lane = tile_bytes / (_PACK_BYTES * config.threads)
    vector_cycles = _SCORE_INSTRUCTIONS * wave_rows * config.block_n / _SIMD_LANES_PER_CYCLE
    vector_cycles += _PACK_CYCLES * packs_per_lane
    wave_cycles = _TILE_CYCLES + matrix_cycles + vector_cycles
    wave_cycles += 0.0 if shape.ahead(config, (gpu,)) else 2 * _LATENCY_CYCLES
    waves_per_simd = max(1.0, blocks_at_once * waves / machine.simds)
    shorter, longer = sorted((matrix_cycles, vector_cycles))
    pipe_cycles = waves_per_simd * (longer + _EXPOSED_PIPE_SHARE * shorter)
    pipe_cycles += _BARRIER_CYCLES if waves > 1 else 0.0
    lds_cycles = blocks_at_once * (waves + 1) * tile_bytes / _LDS_BYTES_PER_CYCLE
    tile_cycles = max(wave_cycles, pipe_cycles, lds_cycles)
    return tile_cycles * (1 if shape.has_ample_registers(config, gpu) else _SINGLE_WAVE_FACTOR)
