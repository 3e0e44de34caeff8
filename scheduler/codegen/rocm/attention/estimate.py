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
_LDS_BYTES = 128.0
_PACK_BYTES = 16
_LATENCY = 500.0  # until a block's first tile arrives
_TILE = 730.0  # a wave's step from tile to tile, besides the costs below
_PACK = 22.0  # a wave's load of 16 bytes per lane, and its store to LDS
_SCORE = 1.1  # instructions per score of a lane, besides those of ``_TILE``
_LANES_A_CYCLE = 16  # of a SIMD
_SECOND = 0.04  # part of the shorter of matrix and vector pipes that other waves do not hide
_BARRIER = 940.0  # several waves wait for each other
_CROWDED = 1.5  # a SIMD has one wave because of its registers, and some need moves to reach
_START = 4370.0  # of a launch
_MEAN = 0.7  # mean steps of uneven blocks, relative to the longest
_MEMORY_SHARE = 0.81  # attainable share of the published bandwidth
_EXPOSED = 0.46  # exposed part of the shorter of computing and memory
_COMBINE_US = 0.6  # the launch that combines partial results
_PARTS_US = 0.02  # each round of combining them
_COMBINED = 8  # partial results that lanes combine side by side at once
_FAR, _FAR_US = 32, 0.7  # with more partial results, the later ones cost another wait
_PARTIAL = 0.5  # part of the time that partial results would take in memory
_A_PART = 0.001  # per split, without clear gain (gfx90a: 64 were 7% slower than 16)


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
    together, rounds = _occupancy(config, problem, shape, gpu, machine, blocks)
    tiles = max(ceil_div(ceil_div(problem.columns, config.block_n), config.splits), 1)
    step = _tile_cycles(config, shape, gpu, machine, together)
    computed = (_START + rounds * (_LATENCY + tiles * step)) / machine.cycles_per_us
    elements = problem.batch * (problem.rows + problem.columns)
    operand_bytes = elements * (shape.depth + shape.value_depth) * shape.element.itemsize
    read = operand_bytes / (_MEMORY_SHARE * machine.bytes_per_us)
    # The first tile is waited for, and nothing is computed meanwhile.
    time = max(computed, read) + min(computed, read) * max(_EXPOSED, 1 / tiles)
    if config.splits == 1:
        return time
    partial_results = config.splits * problem.batch * problem.rows * (shape.value_depth + 2)
    moved = 2 * partial_results * shape.element.compute_dtype.itemsize / machine.bytes_per_us
    combined = _COMBINE_US + _PARTS_US * config.splits / _COMBINED + _PARTIAL * moved
    combined += _FAR_US if config.splits > _FAR else 0.0
    return (time + combined) * (1 + _A_PART * config.splits)


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
    in_lds = shape.queries_in_lds(config, (gpu,))
    ahead = shape.ahead(config, (gpu,))
    registers = max(shape.registers(config, gpu, queries=not in_lds, ahead=ahead), 1)
    waves = config.threads // gpu.wavefront
    by_registers = machine.registers // registers * machine.simds // waves
    by_lds = machine.lds_bytes // shape.lds_bytes(config, gpu, queries=in_lds)
    per_unit = max(1, ceil_div(blocks, machine.units))
    together = min(max(1, min(by_lds, by_registers)), per_unit)
    if problem.uneven:
        return together, max(1.0, per_unit / together * _MEAN)
    return together, ceil_div(per_unit, together)


def _tile_cycles(
    config: AttentionConfig,
    shape: AttentionShape,
    gpu: AmdHardware,
    machine: Machine,
    together: int,
) -> float:
    """Return the cycles of a tile for the blocks that share a unit: a wave's own time, or their
    combined use of matrix pipes, vector pipes and LDS."""
    waves = config.threads // gpu.wavefront
    rows, depths = config.block_m // waves, shape.padded_depth + shape.padded_value_depth
    tile = config.block_n * depths * shape.element.itemsize
    matrix = 2 * rows * config.block_n * depths * machine.simds / machine.rate
    packs = tile / (_PACK_BYTES * config.threads)
    vector = _SCORE * rows * config.block_n / _LANES_A_CYCLE + _PACK * packs
    alone = _TILE + matrix + vector + (0.0 if shape.ahead(config, (gpu,)) else 2 * _LATENCY)
    share = max(1.0, together * waves / machine.simds)
    pipes = share * (max(matrix, vector) + _SECOND * min(matrix, vector))
    pipes += _BARRIER if waves > 1 else 0.0
    step = max(alone, pipes, together * (waves + 1) * tile / _LDS_BYTES)
    return step if shape.has_ample_registers(config, gpu) else _CROWDED * step
