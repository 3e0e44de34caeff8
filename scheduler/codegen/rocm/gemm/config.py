"""Configurations of the matrix templates, and the rules for valid ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from scheduler.codegen.kernel import ConfigValue
from scheduler.codegen.legality import illegal
from scheduler.codegen.rocm.gemm.tiles import tiles_for
from scheduler.errors import Rejected
from scheduler.ir.dtypes import DType
from scheduler.matrix_instructions import COMMON_SIZE, MatrixInstruction
from scheduler.targets import Target
from scheduler.targets.amd import AmdHardware
from scheduler.targets.model import HipHardware, hip_hardware
from scheduler.targets.terms import plural

_GEMV_ELEMENTS = ("f16", "bf16", "f32", "i8")
_DIRECT_BYTES = 16  # of a load
_COPY_BYTES = (4, 8, 16)
_LEAST_STEPS = 2  # of a block that shares tiles with others
_MAX_HELD_WITH_COPIES = 168  # accumulators and addresses: no part of the next tile
# Of the lane registers available with a block's waves (CDNA): reserved for operands that the common
# instructions read ahead, addresses and indices. The larger instructions read half as much.
_RESERVED_REGISTERS = {COMMON_SIZE: 84, 32: 76}
_LEAST_ROW_BYTES = 32  # of a tile's row in LDS: ``kiln::mma::TileRows``
_STREAM_K_RESERVED = 24  # and for the state of a loop over tiles and partial tiles
_FMA_STEP_K = 4  # of ``kiln::mma::Tile`` without matrix instructions


# Names that a configuration may omit.
_OPTIONAL = (
    *("matrix_instr_nonkdim", "async_copies", "gemv", "stream_k"),
    *("direct_to_lds", "setprio", "allow_tf32"),
)
_HALF = 2  # bytes


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
    is the number of blocks that divide all steps along k among them (``gemm_stream_k.py``); 0: each
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
        """Create from a candidate's mapping; raises ``KeyError`` if a name is missing."""
        names = list(GemmConfig.__dataclass_fields__)
        missing = {name: 0 for name in _OPTIONAL if name.upper() not in config}
        return GemmConfig(
            **missing, **{name: int(config[name.upper()]) for name in names if name not in missing}
        )

    def lds_bytes(self, element: DType) -> int:
        """Return the bytes of both tiles for every stage; rows are padded by 16 bytes if elements
        of more than 16 bits are copied asynchronously."""
        if self.gemv:
            return 0
        padding = 16 if self.async_copies and element.itemsize > _HALF else 0
        row = self.block_k * element.itemsize + padding
        return self.stages * (self.block_m + self.block_n) * row


@dataclass(frozen=True)
class GemmProblem:
    """The inputs of the rules: the element type, sizes at the hints, and possible load widths.

    ``obstacles_a`` gives for each width (elements per load) why it is not possible, or "".
    ``masked_a``: elements are computed or masked, each with indices of its own. ``copy_obstacle``
    is why operands cannot be copied to shared memory unchanged, or ""; ``direct_obstacle`` why they
    cannot be loaded into LDS without going through registers. ``along_k``: neighbours along k are
    contiguous in memory, in both operands. ``allow_tf32``: f32 elements may be rounded.
    ``distinct_a``: the distinct share of A's m x k elements in memory, less than 1 if windows
    overlap.
    """

    element: DType
    batches: int
    m: int
    n: int
    k: int
    obstacles_a: tuple[tuple[int, str], ...]
    obstacles_b: tuple[tuple[int, str], ...]
    masked_a: bool = False
    masked_b: bool = False
    copy_obstacle: str = ""
    along_k: bool = False
    direct_obstacle: str = ""
    allow_tf32: bool = False
    distinct_a: float = 1.0
    distinct_b: float = 1.0

    @property
    def tf32_options(self) -> tuple[int, ...]:
        """Return the possible values of a configuration's ``allow_tf32``."""
        return (1, 0) if self.allow_tf32 else (0,)

    def widest_loads(self) -> tuple[int, int]:
        """Return the maximum elements per load of A and of B."""
        return _widest(self.obstacles_a), _widest(self.obstacles_b)


def lane_registers(config: GemmConfig, problem: GemmProblem) -> int:
    """Return the registers of a lane for its accumulators and its part of the next tiles.

    A load takes its data's registers and two for the address; a masked one three for the indices
    that the mask tests. A copy takes only its addresses.
    """
    held = config.block_m * config.block_n * problem.element.product_sum.itemsize // 4
    for block, vector, masked in (
        (config.block_m, config.vector_a, problem.masked_a),
        (config.block_n, config.vector_b, problem.masked_b),
    ):
        data = (
            0
            if config.async_copies or config.direct_to_lds
            else max(vector * problem.element.itemsize // 4, 1)
        )
        held += block * config.block_k // vector * (data + (5 if masked else 2))
    return held // config.threads


@lru_cache(maxsize=256)
def _min_lane_registers(problem: GemmProblem, gpu: HipHardware, size: int) -> int:
    """Return the fewest registers per lane of any tile that the GPU's instructions can divide: if
    all tiles exceed the preferred limit, the smallest are allowed rather than none."""
    a, b = problem.widest_loads()
    step, lanes = step_k(problem.element, gpu, size), gpu.wavefront
    shared = (
        tile
        for tile in tiles_for(problem.element)
        if tile[2] % step == 0 and waves_along_m(*tile[:2], tile[3] // lanes, size)
    )
    return min(lane_registers(GemmConfig(*tile, 1, 1, 1, a, b), problem) for tile in shared)


def vector_widths(element: DType) -> tuple[int, ...]:
    """Return the elements in loads of 16 bytes, of 8 bytes, and of one element."""
    return tuple(dict.fromkeys((16 // element.itemsize, max(1, 8 // element.itemsize), 1)))


def _widest(obstacles: tuple[tuple[int, str], ...]) -> int:
    return max(width for width, obstacle in obstacles if not obstacle)


@cache
def waves_along_m(block_m: int, block_n: int, waves: int, size: int = COMMON_SIZE) -> int:
    """As ``kiln::mma::waves_along_m``: 0 if the waves cannot divide the block."""
    best, least = 0, 1 << 30
    for along_m in range(1, waves + 1):
        along_n = waves // along_m
        if waves % along_m or block_m % (along_m * size) or block_n % (along_n * size):
            continue
        reads = block_m // along_m + block_n // along_n
        if reads < least:
            best, least = along_m, reads
    return best


def matrix_instruction(
    element: DType, gpu: HipHardware, size: int = COMMON_SIZE, *, allow_tf32: bool = False
) -> MatrixInstruction | None:
    """Return the instruction that a GPU multiplies tiles of ``size`` rows and columns with; None:
    plain FMA, and with ``allow_tf32`` no instruction of its own."""
    return gpu.matrix_instruction("tf32" if allow_tf32 else element.label, size)


def step_k(
    element: DType, gpu: HipHardware, size: int = COMMON_SIZE, *, allow_tf32: bool = False
) -> int:
    """Return the elements along k that one step of ``kiln::mma::Tile`` takes."""
    found = matrix_instruction(element, gpu, size, allow_tf32=allow_tf32)
    return _FMA_STEP_K if found is None else found.step_k


def reject(
    config: GemmConfig, problem: GemmProblem, targets: tuple[Target, ...]
) -> Rejected | None:
    """Return the first rule that the configuration breaks, or None."""
    if not problem.element.is_float and problem.element is not DType.I8:
        return illegal(
            f"matrix kernels with elements of type {problem.element.label} are not supported"
        )
    if config.allow_tf32 and (obstacle := _tf32_obstacle(config, problem, targets)):
        return illegal(obstacle)
    for name, width, obstacles in (
        ("A", config.vector_a, problem.obstacles_a),
        ("B", config.vector_b, problem.obstacles_b),
    ):
        obstacle = dict(obstacles).get(width, f"vectors of {width} elements are not supported")
        if obstacle:
            nbytes = width * problem.element.itemsize
            return illegal(f"loads of {nbytes} bytes of {name}: {obstacle}")
    if obstacle := _schedule_obstacle(config, problem, targets[0].words.shared):
        return illegal(obstacle)
    for target in targets:
        rejected = _reject_target(config, problem, hip_hardware(target))
        if rejected is not None:
            return rejected
    return None


def _schedule_obstacle(config: GemmConfig, problem: GemmProblem, shared: str) -> str:
    """Return why steps cannot be divided among blocks, or tiles loaded into LDS, as requested, or
    "". ``shared`` is the targets' name of LDS."""
    if config.split_k > 1 and problem.k < 2 * config.block_k * config.split_k:
        return (
            f"split-K {config.split_k} leaves fewer than two steps of {config.block_k} per "
            f"part of k={problem.k}"
        )
    if config.stream_k and (obstacle := _stream_obstacle(config, problem)):
        return f"stream-K {obstacle}"
    if config.direct_to_lds and (obstacle := _direct_obstacle(config, problem)):
        return f"direct loads into {shared} are not supported: {obstacle}"
    if config.async_copies and (obstacle := _copy_obstacle(config, problem)):
        return f"asynchronous copies are not supported: {obstacle}"
    return ""


def _stream_obstacle(config: GemmConfig, problem: GemmProblem) -> str:
    if config.split_k > 1 or config.gemv:
        return "cannot be combined with split-K or GEMV"
    shared, steps = tile_count(config, problem) % config.stream_k, step_count(config, problem)
    if shared == 0:
        return f"has no effect: {config.stream_k} blocks already have equal numbers of tiles"
    if shared * steps < _LEAST_STEPS * config.stream_k:
        return (
            f"over {shared} tiles of {steps} steps leaves fewer than {_LEAST_STEPS} steps "
            f"for each of {config.stream_k} blocks"
        )
    return ""


def _direct_obstacle(config: GemmConfig, problem: GemmProblem) -> str:
    size = problem.element.itemsize
    if size != _HALF:
        return f"elements of {size} bytes"
    if {config.vector_a * size, config.vector_b * size} != {_DIRECT_BYTES}:
        return f"loads are not {_DIRECT_BYTES} bytes of a row"
    if min(config.block_m, config.block_n) * config.block_k % (config.threads * 8):
        return f"{config.threads} threads cannot divide the tiles evenly"
    return problem.direct_obstacle


def tile_count(config: GemmConfig, problem: GemmProblem) -> int:
    """Return the tiles of the result, at the hints."""
    tiles_m, tiles_n = -(-problem.m // config.block_m), -(-problem.n // config.block_n)
    return problem.batches * tiles_m * tiles_n


def step_count(config: GemmConfig, problem: GemmProblem) -> int:
    """Return the steps along k of each tile, at the hints."""
    return -(-problem.k // config.block_k)


def _tf32_obstacle(config: GemmConfig, problem: GemmProblem, targets: tuple[Target, ...]) -> str:
    """Return why f32 cannot be rounded and multiplied as TF32, or ""."""
    if not problem.allow_tf32:
        return f"rounding {problem.element.label} to tf32 is not allowed"
    if config.gemv:
        return "tf32 is not supported by the GEMV kernels"
    size = config.size
    for gpu in map(hip_hardware, targets):
        if matrix_instruction(problem.element, gpu, size, allow_tf32=True) is None:
            found = f"no {size}x{size} matrix instruction for tf32 on {gpu.processor}"
            return f"{found}: f32 is not rounded"
    return ""


def _copy_obstacle(config: GemmConfig, problem: GemmProblem) -> str:
    if problem.copy_obstacle:
        return problem.copy_obstacle
    for name, vector in (("A", config.vector_a), ("B", config.vector_b)):
        nbytes = vector * problem.element.itemsize
        if nbytes not in _COPY_BYTES:
            return f"{name} is read {nbytes} bytes at a time, not 4, 8 or 16"
    return ""


def _max_lane_registers(config: GemmConfig, problem: GemmProblem, gpu: HipHardware) -> int:
    """Return the maximum registers of a lane."""
    if config.async_copies:
        return _MAX_HELD_WITH_COPIES
    most = gpu.limits.gemm_registers
    if isinstance(gpu, AmdHardware) and gpu.limits.gemm_registers_by_waves:
        waves = -(-config.threads // (gpu.wavefront * gpu.simds_per_cu))  # of a SIMD
        beside = _RESERVED_REGISTERS[config.size] + (_STREAM_K_RESERVED if config.stream_k else 0)
        most = min(most, gpu.vgprs_per_simd // waves - beside)
    return max(most, _min_lane_registers(problem, gpu, config.size))


def _reject_target(config: GemmConfig, problem: GemmProblem, gpu: HipHardware) -> Rejected | None:
    element, size, words = problem.element, config.size, gpu.words
    if config.gemv:
        return _reject_gemv(config, problem, gpu)
    tf32 = bool(config.allow_tf32)
    if size != COMMON_SIZE and matrix_instruction(element, gpu, size, allow_tf32=tf32) is None:
        return illegal(
            f"no {size}x{size} matrix instruction for elements of type {element.label}"
            f" on {gpu.processor}"
        )
    if config.direct_to_lds and gpu.direct_load_bytes != _DIRECT_BYTES:
        return illegal(
            f"direct loads of {_DIRECT_BYTES} bytes into {words.shared} are not supported "
            f"on {gpu.processor}"
        )
    if config.async_copies and not gpu.copies_asynchronously:
        return illegal(
            f"asynchronous copies to {words.shared} are not supported on {gpu.processor}"
        )
    row = config.block_k * element.itemsize
    if row < _LEAST_ROW_BYTES:
        return illegal(
            f"rows of {row} bytes in {words.shared} are below the minimum of {_LEAST_ROW_BYTES}"
        )
    lds, most = config.lds_bytes(element), gpu.max_lds_per_block_bytes
    if lds > most:
        return illegal(
            f"{lds} bytes of {words.shared} exceed the limit of {most} on {gpu.processor}"
        )
    held, most = lane_registers(config, problem), _max_lane_registers(config, problem, gpu)
    if held > most:
        return illegal(
            f"{held} registers per {words.lane} exceed the limit of {most} on {gpu.processor}"
        )
    waves = config.threads // gpu.wavefront
    if waves_along_m(config.block_m, config.block_n, waves, size) == 0:
        return illegal(
            f"a tile of {config.block_m}x{config.block_n} has no {size}x{size} part for "
            f"each of the {waves} {plural(words.wave)} on {gpu.processor}"
        )
    step = step_k(element, gpu, size, allow_tf32=tf32)
    if config.block_k % step:
        return illegal(f"BLOCK_K {config.block_k} is not a multiple of {step} on {gpu.processor}")
    return None


def _reject_gemv(config: GemmConfig, problem: GemmProblem, gpu: HipHardware) -> Rejected | None:
    if problem.element.label not in _GEMV_ELEMENTS:
        return illegal(f"GEMV with elements of type {problem.element.label} is not supported")
    if not problem.along_k or config.vector_a != config.vector_b:
        return illegal("GEMV needs both operands contiguous along k, with equal vector widths")
    waves, step = config.threads // gpu.wavefront, config.vector_b * gpu.wavefront
    if config.block_n % waves:
        return illegal(
            f"{config.block_n} columns cannot be divided among {waves} {plural(gpu.words.wave)}"
        )
    if config.block_k % step:
        return illegal(
            f"BLOCK_K {config.block_k} is not a multiple of the {step} elements of a wave's load"
        )
    # NVIDIA's defaults were measured, and are kept.
    if isinstance(gpu, AmdHardware) and 2 * problem.k < config.block_k:
        return illegal(f"most of BLOCK_K {config.block_k} would be beyond k={problem.k}")
    # Per load: its data and an address of up to two registers.
    rows, loads = config.block_m + config.block_n // waves, config.block_k // step
    held = rows * loads * (max(config.vector_b * problem.element.itemsize // 4, 1) + 2)
    most = gpu.limits.gemm_registers
    if held > most:
        return illegal(
            f"{held} registers per {gpu.words.lane} exceed the limit of {most} on {gpu.processor}"
        )
    return None
