"""What a configuration of the matrix templates takes, estimated: for the default only; tuning
measures.

Three models: of a board's compute units, of an SM where tiles are copied asynchronously, and of few
rows that waves sum by vector instructions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from scheduler.codegen.rocm.gemm_config import (
    GemmConfig,
    GemmProblem,
    held_registers,
    waves_along_m,
)
from scheduler.ir.dtypes import DType
from scheduler.targets import Board, Target, boards, names
from scheduler.targets.amd import AmdHardware
from scheduler.targets.model import hip_hardware

# Of ``estimate``: cycles of a compute unit, bytes a cycle, and what was fitted to the cycle model
# (scheduler/cycles) for f16 products of 16 to 4096 rows on gfx942.
_LDS_BYTES = 128.0  # a cycle, read or written
_L2_BYTES = 64.0  # a cycle and compute unit
_LINE_BYTES = 128
_LEAST_LOAD = 4.0  # cycles of the path of vector memory for one instruction of a wave
_MEMORY_SHARE = 0.81  # of the published bandwidth that anything reaches
_FETCHED_AGAIN = 0.1  # of what another block has fetched
_PARTIAL_LINES = 0.45  # of RDNA: a line that steps take in parts comes again, that much of it
_LATENCY = 900.0  # of a load from memory, and until what it brought can be multiplied
_ALONE_BETWEEN = 5000.0  # from a block's last step to the first of the next
_BARRIER = 100.0
_ISSUED = 0.02  # of the matrix pipes' cycles, in which nothing else is done: of two configurations
# that wait for memory alone, the one that computes less
_SECOND = 0.8  # of the shorter of both, matrix pipes and the rest, a SIMD's only wave does not hide
_SPREAD = 0.5  # of that, where reads and loads stand one by one among the products
_SPREAD_RESULTS = 64  # of a lane at most: ``kSpreads`` of kiln/mma.h
_RESULT = 12.0  # cycles a wave takes for each of its lane's results at the end
_OTHER_VGPRS = 48  # of a lane beside accumulators and the next tile
_LAUNCH_US = 3.0  # of a further kernel
_START_CYCLES = 3000.0
_GEMV_LOADS, _GEMV_UNEVEN = 4, 0.01
_WIDE_STORE = 8  # bytes
_FMA_RATE = 128  # operations a cycle and unit, where no rate is published

# Of ``estimate_with_copies``, fitted to what an H200 took for bf16 at 4096x4096x4096,
# 1024x1024x1024 and 16x14336x4096 and for f32 at 2048x2048x2048; nanoseconds.
_SMS = 132
_REGISTERS, _MAX_REGISTERS = 65536, 255  # of an SM; of a thread
_OTHER_REGISTERS = 100  # of a thread beside its accumulators and the addresses of its copies
_SPILLED = 1.2
_SHARED_BYTES_PER_NS = 240.0
_PER_PRODUCT = {2: 0.00040, 4: 0.0055, 8: 0.0110}  # by bytes of an element
_ALONE, _ALONE_PER_ELEMENT = 8.0, 0.0035  # a warp's step along k that waits for itself
_BARRIER_NS = 100.0
_LAUNCH, _BYTES_PER_NS = 8000.0, 2500.0
_READ_BYTES_PER_NS = 4000.0  # what is read once
_UNDER_WAY = 64 * 1024  # bytes that an SM has asked for, at that rate (measured at 1 to 64 rows)
_COPIED_BYTES_PER_NS = 5000.0  # from L2, of all SMs: to be measured, 6100 was reached at most


@dataclass(frozen=True)
class Machine:
    """A board as a product of one element type sees it: ``rate`` is operations a cycle and compute
    unit (SM), ``registers`` those of a lane that a SIMD has for all its waves."""

    units: int
    cycles_per_us: float
    bytes_per_us: float
    rate: float
    wavefront: int
    simds: int
    registers: int
    lds_bytes: int
    spreads: bool = False
    """Whether a wave reads ahead in an order that is said (kiln/mma.h)."""
    partial_lines: float = 0.0
    """Of a line that a step takes a part of, what the next step has to fetch again."""


@lru_cache(maxsize=256)
def machine_of(target: Target, element: DType) -> Machine:
    """The target's first board; of a target without one, that of the nearest of its generation."""
    gpu, board = hip_hardware(target), _board(target)
    rate = board.matrix.get(element.label) or board.vector.get(element.label) or _FMA_RATE
    amd = gpu if isinstance(gpu, AmdHardware) else None
    return Machine(
        board.compute_units,
        float(board.clock_mhz),
        board.memory_bytes_per_s / 1e6,
        float(rate),
        gpu.wavefront,
        amd.simds_per_cu if amd else 4,
        amd.vgprs_per_simd if amd else _REGISTERS // 128,
        amd.lds_bytes if amd else gpu.max_lds_per_block_bytes,
        amd is not None and amd.architecture == "cdna",
        _PARTIAL_LINES if amd is not None and amd.architecture == "rdna" else 0.0,
    )


def _board(target: Target) -> Board:
    """Of what the target is or emulates."""
    name = target.emulates or target.name
    if found := boards(name):
        return found[0]
    near = sorted(names(), key=lambda other: -_alike(other, name))
    return next(board for other in near for board in boards(other))


def _alike(one: str, other: str) -> int:
    """How many letters they begin with alike."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))


def estimate(config: GemmConfig, problem: GemmProblem, machine: Machine) -> float:
    """Microseconds of the whole product.

    The busiest compute unit's rounds of blocks; each step along k of those that share it takes as
    long as the slowest of: matrix pipes, LDS, the path from L2, and what a block waits for by
    itself. No less than the operands take from memory. Parts of k are added by another kernel.
    """
    together, rounds = _shared(config, problem, machine)
    steps = _blocks(_blocks(problem.k, config.split_k), config.block_k)
    waves = config.threads // machine.wavefront
    busy = min(1.0, together * waves / machine.simds)
    area = config.block_m * config.block_n
    multiply = 2 * together * area * config.block_k / (machine.rate * busy)
    moved = together * (
        _lds_cycles(config, problem, waves) + _load_cycles(config, problem, machine)
    )
    moved = max(moved, together * _memory_cycles(config, problem, machine))
    barriers = _BARRIER * (2 if config.stages == 1 else 1)
    alone = _LATENCY + barriers + multiply / together
    longest, other = max(multiply, moved), min(multiply, moved)
    exposed = min(1.0, _SECOND * machine.simds / (together * waves))
    spreads = machine.spreads and config.stages == 1 and together * waves >= 2 * machine.simds
    if spreads and area <= _SPREAD_RESULTS * config.threads:
        exposed *= _SPREAD
    step = max(longest + exposed * other, alone) + _ISSUED * multiply
    if together == 1:  # no other block goes on while this one's waves wait for each other
        step += _ISSUED * barriers
    finish = together * _RESULT * area / (config.threads * min(1.0, machine.simds / waves))
    between = _LATENCY if together > 1 else _ALONE_BETWEEN  # where no other block goes on meanwhile
    cycles = _START_CYCLES + rounds * (steps * step + finish + between)
    time_us = _beside_reading(cycles / machine.cycles_per_us, problem, machine)
    if config.split_k == 1:
        return time_us
    partial = problem.batches * problem.m * problem.n * config.split_k
    compute = problem.element.compute.itemsize
    return time_us + _LAUNCH_US + 2 * partial * compute / machine.bytes_per_us


def _shared(config: GemmConfig, problem: GemmProblem, machine: Machine) -> tuple[int, float]:
    """How many blocks a compute unit has at once, and how often it has as many: the next block
    begins where one ends."""
    waves = config.threads // machine.wavefront
    registers = held_registers(config, problem) + _OTHER_VGPRS
    by_registers = machine.registers // registers * machine.simds // max(1, waves)
    held = max(1, min(machine.lds_bytes // config.lds_bytes(problem.element), by_registers))
    tiles = _blocks(problem.m, config.block_m) * _blocks(problem.n, config.block_n)
    own = max(1, _blocks(tiles * problem.batches * config.split_k, machine.units))
    together = min(held, own)
    return together, own / together


def _lds_cycles(config: GemmConfig, problem: GemmProblem, waves: int) -> float:
    """Of one block's step: both tiles written once, and read by each wave that needs them."""
    along_m = max(1, waves_along_m(config.block_m, config.block_n, waves))
    along_n = max(1, waves // along_m)
    read = config.block_m * along_n + config.block_n * along_m
    rows = read + config.block_m + config.block_n
    return rows * config.block_k * problem.element.itemsize / _LDS_BYTES


def _memory_cycles(config: GemmConfig, problem: GemmProblem, machine: Machine) -> float:
    """Of one block's step: what no other block has brought to L2 comes from memory, and some of
    what others have, since dies have caches of their own."""
    tiles_m, tiles_n = _blocks(problem.m, config.block_m), _blocks(problem.n, config.block_n)
    asked = max(1, tiles_n * problem.m + tiles_m * problem.n)
    share = _FETCHED_AGAIN + (1 - _FETCHED_AGAIN) * (problem.m + problem.n) / asked
    size = problem.element.itemsize
    blocks = tiles_m * tiles_n * problem.batches * config.split_k
    # Units that have no block in the last round leave the others their bandwidth.
    busy = min(machine.units, blocks / _blocks(blocks, machine.units)) if blocks else 1
    own = machine.bytes_per_us / machine.cycles_per_us / busy
    rows = sum(extent for extent, _ in _loaded(config, problem))
    again = 1 + machine.partial_lines * (_parts_of_a_line(config, size) - 1)
    return rows * _depth(config, problem) * size * share * again / own


def _loaded(config: GemmConfig, problem: GemmProblem) -> tuple[tuple[int, int], tuple[int, int]]:
    """Of each tile the rows that there are, the others being masked, and elements a load."""
    return (
        (min(config.block_m, problem.m), config.vector_a),
        (min(config.block_n, problem.n), config.vector_b),
    )


def _depth(config: GemmConfig, problem: GemmProblem) -> int:
    """Of a step along k what there is."""
    return min(config.block_k, _blocks(problem.k, config.split_k))


def _load_cycles(config: GemmConfig, problem: GemmProblem, machine: Machine) -> float:
    """Of one block's step: an instruction of few bytes a lane takes its cycles all the same."""
    size, cycles = problem.element.itemsize, 0.0
    unused = _parts_of_a_line(config, size)  # lines come whole, rows go along k
    for rows, vector in _loaded(config, problem):
        loads = rows * _depth(config, problem) / (vector * machine.wavefront)
        wide = machine.wavefront * vector * size * unused / _L2_BYTES
        cycles += loads * max(wide, _LEAST_LOAD)
    return cycles


def estimate_with_copies(config: GemmConfig, problem: GemmProblem, shared_bytes: int) -> float:
    """Nanoseconds of the whole product on an SM's ``shared_bytes``, roughly.

    Rounds of blocks over the SMs, times k, times the most of: what a warp waits for itself, and
    what the SM's blocks take together of the multipliers and of shared memory; no less than L2
    needs for what all copy. Parts of k are stored and added by another kernel.
    """
    warps, area = config.threads // 32, config.block_m * config.block_n
    registers = min(_MAX_REGISTERS, area // config.threads + _OTHER_REGISTERS)
    held = min(
        shared_bytes // config.lds_bytes(problem.element),
        _REGISTERS // (registers * config.threads),
    )
    tiles = _blocks(problem.m, config.block_m) * _blocks(problem.n, config.block_n)
    blocks = tiles * problem.batches * config.split_k
    if not blocks:
        return 0.0
    together = max(1, min(held, _blocks(blocks, _SMS)))
    rounds = _blocks(blocks, _SMS * max(1, held))
    along_m = max(1, waves_along_m(config.block_m, config.block_n, warps))
    edges = config.block_m // along_m + config.block_n // (warps // along_m)
    shared = together * warps * edges * problem.element.itemsize / _SHARED_BYTES_PER_NS
    multiplied = together * area * _PER_PRODUCT[problem.element.itemsize]
    alone = _ALONE + _ALONE_PER_ELEMENT * area / warps
    barriers = _BARRIER_NS / config.block_k if together == 1 else 0.0  # another block goes on
    k = _blocks(problem.k, config.split_k)
    computed = rounds * k * (max(alone, multiplied + shared) + barriers)
    copies = (
        (config.block_m + config.block_n) * config.block_k // (config.vector_a * config.threads)
    )
    if area // config.threads + _OTHER_REGISTERS + 2 * copies > _MAX_REGISTERS:
        computed *= _SPILLED
    given = problem.batches * (problem.m + problem.n) * problem.k * problem.element.itemsize
    # Rows beyond the edge repeat the last one, which is in a cache.
    asked = min(config.block_m, problem.m) + min(config.block_n, problem.n)
    asked *= (config.stages - 1) * config.block_k * problem.element.itemsize
    under_way = min(blocks / _SMS, max(1, held)) * asked
    read_rate = _READ_BYTES_PER_NS * min(1.0, under_way / _UNDER_WAY)
    copied = blocks * k * (config.block_m + config.block_n) * problem.element.itemsize
    read = given / read_rate
    time = max(computed, read, copied / _COPIED_BYTES_PER_NS)
    time += _ISSUED * read  # of equals, the one that has more under way
    if config.split_k == 1:
        return time
    partial = problem.batches * problem.m * problem.n * config.split_k
    return time + _LAUNCH + 2 * partial * problem.element.compute.itemsize / _BYTES_PER_NS


def estimates(
    configs: Iterable[GemmConfig], problem: GemmProblem, targets: tuple[Target, ...]
) -> Mapping[GemmConfig, float]:
    """Each configuration's estimated time over that of the best, on the target where that is
    most."""
    given_configs = list(configs)
    worst = dict.fromkeys(given_configs, 0.0)
    for target in targets:
        times = {config: _time(config, problem, target) for config in given_configs}
        least = min(times.values(), default=0.0) or 1.0  # of nothing
        worst = {config: max(worst[config], times[config] / least) for config in given_configs}
    return worst


def _time(config: GemmConfig, problem: GemmProblem, target: Target) -> float:
    """Microseconds."""
    if config.async_copies:
        room = hip_hardware(target).max_lds_per_block_bytes
        return estimate_with_copies(config, problem, room) / 1e3
    how = estimate_gemv if config.gemv else estimate
    return how(config, problem, machine_of(target, problem.element))


def estimate_gemv(config: GemmConfig, problem: GemmProblem, machine: Machine) -> float:
    """Microseconds of few rows that waves sum by vector instructions: what the operands take from
    memory, or the sums or one wave's steps if those take longer. Fitted to the cycle model: four
    loads of B under way in each wave are best, and results stored at least 8 bytes at once."""
    sums = problem.batches * _blocks(problem.m, config.block_m) * config.block_m * problem.n
    computed = 2 * sums * problem.k / (_FMA_RATE * machine.units * machine.cycles_per_us)
    columns = config.block_n * machine.wavefront // config.threads
    loads = columns * config.block_k / (config.vector_b * machine.wavefront)
    # A wave's steps wait one after the other, whatever else its unit does.
    waits = _START_CYCLES + _blocks(problem.k, config.block_k) * _LATENCY
    computed = max(computed, waits / machine.cycles_per_us)
    narrow = columns * problem.element.itemsize < _WIDE_STORE
    uneven = abs(math.log2(loads / _GEMV_LOADS)) + 2 * narrow
    return _beside_reading(computed, problem, machine) * (1 + _GEMV_UNEVEN * uneven)


def _beside_reading(computed: float, problem: GemmProblem, machine: Machine) -> float:
    """Microseconds, no less than the operands take from memory; of two that wait for that alone
    the one that computes less is the better."""
    given = problem.batches * (problem.m + problem.n) * problem.k * problem.element.itemsize
    read = given / (_MEMORY_SHARE * machine.bytes_per_us)
    return max(computed, read) + _ISSUED * min(computed, read)


def _parts_of_a_line(config: GemmConfig, size: int) -> float:
    """Steps along k that share a cache line, of elements of so many bytes."""
    return max(1.0, _LINE_BYTES / (config.block_k * size))


def _blocks(extent: int, block: int) -> int:
    return -(-extent // block)
