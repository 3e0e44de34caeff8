"""Configurations of the matrix templates, and the rules for valid ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache, lru_cache
from itertools import chain

from scheduler.arithmetic import ceil_div
from scheduler.codegen.kernel import ConfigValue
from scheduler.codegen.legality import illegal
from scheduler.codegen.rocm.gemm.problem import GemmProblem, matrix_instruction, step_k
from scheduler.codegen.rocm.gemm.tiles import tiles_for
from scheduler.errors import Rejected
from scheduler.ir.dtypes import DType
from scheduler.matrix_instructions import COMMON_SIZE
from scheduler.targets import Target
from scheduler.targets.amd import AmdHardware
from scheduler.targets.model import HipHardware, hip_hardware
from scheduler.targets.terms import plural

_GEMV_ELEMENTS = ("f16", "bf16", "f32", "i8")
_DIRECT_LOAD_BYTES = 16
_COPY_BYTES = (4, 8, 16)
_MIN_STREAM_K_STEPS = 2  # of a block that shares tiles with others
_MAX_REGISTERS_WITH_COPIES = 168  # accumulators and addresses: no part of the next tile
# Of the lane registers available with a block's waves (CDNA): reserved for operands that the common
# instructions read ahead, addresses and indices. The larger instructions read half as much.
_RESERVED_REGISTERS = {COMMON_SIZE: 84, 32: 76}
_STREAM_K_RESERVED = 24  # and for the state of a loop over tiles and partial tiles
_MIN_ROW_BYTES = 32  # of a tile's row in LDS: ``kiln::mma::TileRows``
_HALF_BYTES = 2


@dataclass(frozen=True)
class GemmConfig:
    """One way to tile a product. Names are those of the kernel's constants, in lower case.

    ``vector_a`` and ``vector_b`` are elements per load; ``stages`` buffers in LDS (2: one barrier
    per step); ``group_m`` rows of tiles that are walked together; ``split_k`` parts of k that
    different blocks sum (a second kernel adds them). ``matrix_instr_nonkdim`` (Triton's name) is 32
    for the instructions whose result is 32x32; other configurations and their sources omit it.
    ``async_copies`` is 1 if tiles are copied to shared memory while others are multiplied, up to
    ``stages`` - 1 of them at once; other configurations omit it too. ``gemv`` is 1 if waves sum the
    columns of a few rows by vector instructions, without matrix instructions and LDS. ``stream_k``
    is the number of blocks that share all steps along k (``stream_k_configs``); 0: each
    tile has a block. ``direct_to_lds`` is 1 if loads write directly to LDS, up to ``stages`` - 1
    tiles ahead; ``setprio`` is then the priority of multiplying waves over the others.
    ``allow_tf32`` (Triton's name) is 1 if f32 is rounded and multiplied by the faster TF32 matrix
    instructions.
    """

    block_m: int
    block_n: int
    block_k: int
    threads: int
    stages: int
    group_m: int
    split_k: int
    vector_a: int
    vector_b: int
    matrix_instr_nonkdim: int = 0
    async_copies: int = 0
    gemv: int = 0
    stream_k: int = 0
    direct_to_lds: int = 0
    setprio: int = 0
    allow_tf32: int = 0

    @property
    def size(self) -> int:
        """Return the rows and columns of a matrix instruction's result."""
        return self.matrix_instr_nonkdim or COMMON_SIZE

    def items(self) -> dict[str, ConfigValue]:
        """Return the parameters as the kernel and the ledger name them; zero values are omitted."""
        return {name.upper(): value for name, value in vars(self).items() if value}

    @staticmethod
    def create(config: Mapping[str, ConfigValue]) -> GemmConfig:
        """Create from a candidate's mapping; raises ``KeyError`` if a name without a default is
        missing."""
        values = {
            field.name: int(config[field.name.upper()])
            for field in fields(GemmConfig)
            if field.default is MISSING or field.name.upper() in config
        }
        return GemmConfig(**values)

    def lds_bytes(self, element: DType) -> int:
        """Return the bytes of both tiles for every stage; rows are padded by 16 bytes if elements
        of more than 16 bits are copied asynchronously."""
        if self.gemv:
            return 0
        padding_bytes = 16 if self.async_copies and element.itemsize > _HALF_BYTES else 0
        row_bytes = self.block_k * element.itemsize + padding_bytes
        return self.stages * (self.block_m + self.block_n) * row_bytes


def tile_count(config: GemmConfig, problem: GemmProblem) -> int:
    """Return the tiles of the result, at the hints."""
    tiles_m, tiles_n = ceil_div(problem.m, config.block_m), ceil_div(problem.n, config.block_n)
    return problem.batches * tiles_m * tiles_n


def step_count(config: GemmConfig, problem: GemmProblem) -> int:
    """Return the steps along k of each tile, at the hints."""
    return ceil_div(problem.k, config.block_k)


def lane_registers(config: GemmConfig, problem: GemmProblem) -> int:
    """Return the registers of a lane for its accumulators and its part of the next tiles.

    A load takes its data's registers and two for the address; a masked one three for the indices
    that the mask tests. A copy takes only its addresses.
    """
    registers = config.block_m * config.block_n * problem.element.product_sum.itemsize // 4
    for block, vector, masked in (
        (config.block_m, config.vector_a, problem.masked_a),
        (config.block_n, config.vector_b, problem.masked_b),
    ):
        data_registers = (
            0
            if config.async_copies or config.direct_to_lds
            else max(vector * problem.element.itemsize // 4, 1)
        )
        registers += block * config.block_k // vector * (data_registers + (5 if masked else 2))
    return registers // config.threads


@lru_cache(maxsize=256)
def _min_lane_registers(problem: GemmProblem, gpu: HipHardware, size: int) -> int:
    """Return the fewest registers per lane of any tile that the GPU's instructions can divide: if
    all tiles exceed the preferred limit, the smallest are allowed rather than none."""
    a, b = problem.widest_loads()
    step, lanes = step_k(problem.element, gpu, size), gpu.wavefront
    divisible = (
        tile
        for tile in tiles_for(problem.element)
        if tile[2] % step == 0 and waves_along_m(*tile[:2], tile[3] // lanes, size)
    )
    return min(lane_registers(GemmConfig(*tile, 1, 1, 1, a, b), problem) for tile in divisible)


@cache
def waves_along_m(block_m: int, block_n: int, waves: int, size: int = COMMON_SIZE) -> int:
    """As ``kiln::mma::waves_along_m``: 0 if the waves cannot divide the block."""
    best, min_reads = 0, 1 << 30
    for along_m in range(1, waves + 1):
        along_n = waves // along_m
        if waves % along_m or block_m % (along_m * size) or block_n % (along_n * size):
            continue
        reads = block_m // along_m + block_n // along_n
        if reads < min_reads:
            best, min_reads = along_m, reads
    return best


def reject(
    config: GemmConfig, problem: GemmProblem, targets: tuple[Target, ...]
) -> Rejected | None:
    """Return the first rule that the configuration breaks, or None."""
    gpus = tuple(map(hip_hardware, targets))
    gpu_obstacles = _gemv_obstacles if config.gemv else _tile_obstacles
    obstacles = chain(
        _schedule_obstacles(config, problem, gpus),
        _copy_obstacles(config, problem, targets[0].words.shared),
        *(gpu_obstacles(config, problem, gpu) for gpu in gpus),
    )
    obstacle = next(obstacles, "")
    return illegal(obstacle) if obstacle else None


def _schedule_obstacles(
    config: GemmConfig, problem: GemmProblem, gpus: tuple[HipHardware, ...]
) -> Iterator[str]:
    """Yield why elements cannot be multiplied or loaded, or steps divided among blocks, as
    requested."""
    element, size = problem.element, config.size
    if not element.is_float and element is not DType.I8:
        yield f"matrix kernels with elements of type {element.label} are not supported"
    if config.allow_tf32 and not problem.allow_tf32:
        yield f"rounding {element.label} to tf32 is not allowed"
    if config.allow_tf32 and config.gemv:
        yield "tf32 is not supported by the GEMV kernels"
    for gpu in gpus if config.allow_tf32 else ():
        if matrix_instruction(element, gpu, size, allow_tf32=True) is None:
            missing = f"no {size}x{size} matrix instruction for tf32 on {gpu.processor}"
            yield f"{missing}: f32 is not rounded"
    for name, width, obstacles in (
        ("A", config.vector_a, problem.obstacles_a),
        ("B", config.vector_b, problem.obstacles_b),
    ):
        obstacle = dict(obstacles).get(width, f"vectors of {width} elements are not supported")
        if obstacle:
            yield f"loads of {width * element.itemsize} bytes of {name}: {obstacle}"
    if config.split_k > 1 and problem.k < 2 * config.block_k * config.split_k:
        yield (
            f"split-K {config.split_k} leaves fewer than two steps of {config.block_k} per "
            f"part of k={problem.k}"
        )
    if not config.stream_k:
        return
    if config.split_k > 1 or config.gemv:
        yield "stream-K cannot be combined with split-K or GEMV"
    shared_tiles, steps = tile_count(config, problem) % config.stream_k, step_count(config, problem)
    if shared_tiles == 0:
        blocks = f"{config.stream_k} blocks"
        yield f"stream-K has no effect: {blocks} already have equal numbers of tiles"
    if shared_tiles * steps < _MIN_STREAM_K_STEPS * config.stream_k:
        yield (
            f"stream-K over {shared_tiles} tiles of {steps} steps leaves fewer than "
            f"{_MIN_STREAM_K_STEPS} steps for each of {config.stream_k} blocks"
        )


def _copy_obstacles(config: GemmConfig, problem: GemmProblem, lds_name: str) -> Iterator[str]:
    """Yield why tiles cannot be loaded into LDS, which the targets call ``shared``, as
    requested."""
    itemsize = problem.element.itemsize
    loads = (("A", config.vector_a * itemsize), ("B", config.vector_b * itemsize))
    if config.direct_to_lds:
        unsupported = f"direct loads into {lds_name} are not supported"
        if itemsize != _HALF_BYTES:
            yield f"{unsupported}: elements of {itemsize} bytes"
        if any(nbytes != _DIRECT_LOAD_BYTES for _, nbytes in loads):
            yield f"{unsupported}: loads are not {_DIRECT_LOAD_BYTES} bytes of a row"
        if min(config.block_m, config.block_n) * config.block_k % (config.threads * 8):
            yield f"{unsupported}: {config.threads} threads cannot divide the tiles evenly"
        if problem.direct_obstacle:
            yield f"{unsupported}: {problem.direct_obstacle}"
    if config.async_copies:
        unsupported = "asynchronous copies are not supported"
        if problem.copy_obstacle:
            yield f"{unsupported}: {problem.copy_obstacle}"
        for name, nbytes in loads:
            if nbytes not in _COPY_BYTES:
                yield f"{unsupported}: {name} is read {nbytes} bytes at a time, not 4, 8 or 16"


def _tile_obstacles(config: GemmConfig, problem: GemmProblem, gpu: HipHardware) -> Iterator[str]:
    """Yield why a GPU cannot hold or divide the tiles, or lacks an instruction."""
    element, size, words = problem.element, config.size, gpu.words
    tf32 = bool(config.allow_tf32)
    if size != COMMON_SIZE and matrix_instruction(element, gpu, size, allow_tf32=tf32) is None:
        yield (
            f"no {size}x{size} matrix instruction for elements of type {element.label}"
            f" on {gpu.processor}"
        )
    if config.direct_to_lds and gpu.direct_load_bytes != _DIRECT_LOAD_BYTES:
        yield (
            f"direct loads of {_DIRECT_LOAD_BYTES} bytes into {words.shared} are not supported "
            f"on {gpu.processor}"
        )
    if config.async_copies and not gpu.copies_asynchronously:
        yield f"asynchronous copies to {words.shared} are not supported on {gpu.processor}"
    row = config.block_k * element.itemsize
    if row < _MIN_ROW_BYTES:
        yield f"rows of {row} bytes in {words.shared} are below the minimum of {_MIN_ROW_BYTES}"
    lds_bytes, limit = config.lds_bytes(element), gpu.max_lds_per_block_bytes
    if lds_bytes > limit:
        yield f"{lds_bytes} bytes of {words.shared} exceed the limit of {limit} on {gpu.processor}"
    registers, max_registers = (
        lane_registers(config, problem),
        _max_lane_registers(config, problem, gpu),
    )
    if registers > max_registers:
        yield (
            f"{registers} registers per {words.lane} exceed the limit of {max_registers} "
            f"on {gpu.processor}"
        )
    waves = config.threads // gpu.wavefront
    if waves_along_m(config.block_m, config.block_n, waves, size) == 0:
        yield (
            f"a tile of {config.block_m}x{config.block_n} has no {size}x{size} part for "
            f"each of the {waves} {plural(words.wave)} on {gpu.processor}"
        )
    step = step_k(element, gpu, size, allow_tf32=tf32)
    if config.block_k % step:
        yield f"BLOCK_K {config.block_k} is not a multiple of {step} on {gpu.processor}"


def _max_lane_registers(config: GemmConfig, problem: GemmProblem, gpu: HipHardware) -> int:
    """Return the maximum registers of a lane."""
    if config.async_copies:
        return _MAX_REGISTERS_WITH_COPIES
    limit = gpu.limits.gemm_registers
    if isinstance(gpu, AmdHardware) and gpu.limits.gemm_registers_by_waves:
        waves_per_simd = ceil_div(config.threads, gpu.wavefront * gpu.simds_per_cu)
        reserved = _RESERVED_REGISTERS[config.size] + (_STREAM_K_RESERVED if config.stream_k else 0)
        limit = min(limit, gpu.vgprs_per_simd // waves_per_simd - reserved)
    return max(limit, _min_lane_registers(problem, gpu, config.size))


def _gemv_obstacles(config: GemmConfig, problem: GemmProblem, gpu: HipHardware) -> Iterator[str]:
    """Yield why a GPU's waves cannot sum the columns of a few rows as requested."""
    element, words = problem.element, gpu.words
    if element.label not in _GEMV_ELEMENTS:
        yield f"GEMV with elements of type {element.label} is not supported"
    if not problem.along_k or config.vector_a != config.vector_b:
        yield "GEMV needs both operands contiguous along k, with equal vector widths"
    waves, step = config.threads // gpu.wavefront, config.vector_b * gpu.wavefront
    if config.block_n % waves:
        yield f"{config.block_n} columns cannot be divided among {waves} {plural(words.wave)}"
    if config.block_k % step:
        yield f"BLOCK_K {config.block_k} is not a multiple of the {step} elements of a wave's load"
    # NVIDIA's defaults were measured, and are kept.
    if isinstance(gpu, AmdHardware) and 2 * problem.k < config.block_k:
        yield f"most of BLOCK_K {config.block_k} would be beyond k={problem.k}"
    # Per load: its data and an address of up to two registers.
    load_rows, loads = config.block_m + config.block_n // waves, config.block_k // step
    registers = load_rows * loads * (max(config.vector_b * element.itemsize // 4, 1) + 2)
    limit = gpu.limits.gemm_registers
    if registers > limit:
        yield (
            f"{registers} registers per {words.lane} exceed the limit of {limit} on {gpu.processor}"
        )
