"""Configurations of the matrix templates: which there are, which serve, which is the default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import product

from scheduler.codegen.kernel import ConfigValue
from scheduler.codegen.legality import illegal
from scheduler.ir.dtypes import DType
from scheduler.matrix_instructions import COMMON_SIZE, OTHER_SIZES, MatrixInstruction, select
from scheduler.outcome import Rejected
from scheduler.targets import Target
from scheduler.targets.amd import AmdHardware
from scheduler.targets.model import HipHardware, hip_hardware
from scheduler.targets.words import plural

# (block_m, block_n, block_k, threads); a wave of 64 lanes and one of 32 can both share them out.
_TILES = (
    (256, 128, 32, 256),
    (256, 256, 32, 512),
    (256, 256, 64, 512),
    (128, 256, 32, 256),
    (128, 128, 16, 256),
    (128, 128, 32, 256),
    (128, 128, 64, 256),
    (128, 64, 32, 256),
    (128, 64, 64, 128),
    (64, 128, 32, 256),
    (64, 128, 64, 128),
    (64, 64, 16, 256),
    (64, 64, 32, 128),
    (64, 64, 64, 256),
    (64, 32, 64, 128),
    (32, 64, 64, 128),
    (32, 32, 128, 128),
    (16, 128, 64, 128),
    (128, 16, 64, 128),
    (16, 64, 128, 128),
    (16, 32, 128, 64),
)
# With asynchronous copies a warp has up to 64x64 of the result, since the next tiles are in no
# registers; the small ones are for results that few blocks share.
_ASYNC_TILES = (
    (256, 128, 32, 256),
    (128, 256, 32, 256),
    (256, 128, 64, 256),
    (128, 256, 64, 256),
    (128, 128, 32, 128),
    (128, 128, 64, 128),
    (128, 128, 64, 256),
    (128, 64, 64, 128),
    (64, 128, 64, 128),
    (64, 64, 64, 128),
    (32, 64, 64, 128),
    (16, 128, 64, 128),
    (16, 64, 128, 128),
)
# Of few rows: a wave of 64 lanes sums a quarter of the columns, one of 32 an eighth.
_GEMV_TILES = (
    (8, 1024, 256),
    (16, 256, 256),
    (16, 512, 256),
    (16, 1024, 256),
    (32, 256, 256),
    (32, 512, 256),
    (32, 1024, 256),
)
_GEMV_ROWS = (1, 2, 4)
_GEMV_ELEMENTS = ("f16", "bf16", "f32")
_ASYNC_STAGES = (3, 4)
_ASYNC_SPLITS = (1, 4, 8)
_SPLIT_AREA = 64 * 128  # of a tile, at most, where k is split
_COPY_BYTES = (4, 8, 16)
_SPLITS = (1, 2, 4, 8)
_MORE_SPLITS = (16, 32)  # of tiles of few rows or columns
_FEW = 32
_STAGES = (1, 2)
GROUPS = (1, 8)
# Registers of a lane that accumulators and the next tile may hold together, so that what the
# multiplication reads and the addresses still fit: of 256 that RDNA can address (NVIDIA: 255), of
# 512 on CDNA.
_MAX_HELD_REGISTERS = {"rdna": 144, "cdna": 320, "cuda": 144}
_MAX_HELD_WITH_COPIES = 168  # accumulators and addresses: no part of the next tile
# Of the registers of a CDNA lane that a block's waves leave each other: for what the common
# instructions read ahead, addresses and indices. The larger ones read half as much.
_BESIDE_HELD = {COMMON_SIZE: 84, 32: 76}
_FMA_STEP_K = 4  # of ``kiln::mma::Tile`` without matrix instructions


_OPTIONAL = ("matrix_instr_nonkdim", "async_copies", "gemv")  # of a configuration's names
_HALF = 2  # bytes


@dataclass(frozen=True)
class GemmConfig:
    """One way to tile a product. Names are those of the kernel's constants, in lower case.

    ``vector_a`` and ``vector_b`` are elements a load; ``stages`` buffers in LDS (2: one barrier a
    step); ``group_m`` rows of tiles that are walked together; ``split_k`` parts of k that
    different blocks sum (a second kernel adds them). ``matrix_instr_nonkdim`` (Triton's name) is
    32 for the instructions whose result is 32x32; the others do not name it, nor does their text.
    ``async_copies`` is 1 where tiles are copied to shared memory while others are multiplied, up to
    ``stages`` - 1 of them at once; the others do not name it either. ``gemv`` is 1 where waves sum
    the columns of a few rows by vector instructions, without matrix instructions and LDS.
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

    @property
    def size(self) -> int:
        """Rows and columns of a matrix instruction's result."""
        return self.matrix_instr_nonkdim or COMMON_SIZE

    def items(self) -> dict[str, ConfigValue]:
        """As the kernel and the ledger name them; what is 0 is left to the kernel."""
        return {name.upper(): value for name, value in vars(self).items() if value}

    @staticmethod
    def of(config: Mapping[str, ConfigValue]) -> GemmConfig:
        """From a candidate's mapping; ``KeyError`` where a name is missing."""
        names = list(GemmConfig.__dataclass_fields__)
        missing = {name: 0 for name in _OPTIONAL if name.upper() not in config}
        return GemmConfig(
            **missing, **{name: int(config[name.upper()]) for name in names if name not in missing}
        )

    def lds_bytes(self, element: DType) -> int:
        """Both tiles for every stage; rows are padded by 16 bytes where elements of more than 16
        bits are copied asynchronously."""
        if self.gemv:
            return 0
        padding = 16 if self.async_copies and element.itemsize != _HALF else 0
        row = self.block_k * element.itemsize + padding
        return self.stages * (self.block_m + self.block_n) * row


@dataclass(frozen=True)
class GemmProblem:
    """What the rules look at: the element type, sizes at the hints, and how wide loads may be.

    ``obstacles_a`` says for each width (elements a load) why it is not possible, "" where it is.
    ``masked_a``: elements are computed or stand behind a mask, each with indices of its own.
    ``copy_obstacle`` says why operands cannot be copied to shared memory as they lie, "" where
    they can. ``along_k``: neighbours along k are neighbours in memory, in both operands.
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

    def widest(self) -> tuple[int, int]:
        """Elements a load of A and of B."""
        return _widest(self.obstacles_a), _widest(self.obstacles_b)


def held_registers(config: GemmConfig, problem: GemmProblem) -> int:
    """Registers of a lane for its accumulators and its part of the next tiles.

    A load takes its data's registers and two for the address; one behind a mask three for the
    indices that the mask looks at. A copy takes its addresses alone.
    """
    held = config.block_m * config.block_n * problem.element.compute.itemsize // 4
    for block, vector, masked in (
        (config.block_m, config.vector_a, problem.masked_a),
        (config.block_n, config.vector_b, problem.masked_b),
    ):
        data = 0 if config.async_copies else max(vector * problem.element.itemsize // 4, 1)
        held += block * config.block_k // vector * (data + (5 if masked else 2))
    return held // config.threads


@lru_cache(maxsize=256)
def _least_held(problem: GemmProblem, gpu: HipHardware, size: int) -> int:
    """Of the tiles that the GPU's instructions share out: where each holds more than is good, the
    smallest serve, rather than none."""
    a, b = problem.widest()
    step, lanes = step_k(problem.element, gpu, size), gpu.wavefront
    shared = (
        tile
        for tile in _TILES
        if tile[2] % step == 0 and waves_along_m(*tile[:2], tile[3] // lanes, size)
    )
    return min(held_registers(GemmConfig(*tile, 1, 1, 1, a, b), problem) for tile in shared)


def vector_widths(element: DType) -> tuple[int, ...]:
    """Elements in loads of 16 bytes, 8 bytes, and one element."""
    return tuple(dict.fromkeys((16 // element.itemsize, max(1, 8 // element.itemsize), 1)))


def _widest(obstacles: tuple[tuple[int, str], ...]) -> int:
    return max(width for width, obstacle in obstacles if not obstacle)


def all_configs(problem: GemmProblem) -> Iterator[GemmConfig]:
    """Every configuration in a fixed order; wider loads than the problem allows once each.

    Which instruction is used does not change how the tiles are best walked: those of other sizes
    come with the default's ``group_m`` alone.
    """
    a, b = problem.widest()
    yield from common_configs(problem, GROUPS)
    for size, lanes in OTHER_SIZES:
        shared = (tile for tile in _TILES if waves_along_m(*tile[:2], tile[3] // lanes, size))
        for tile, stages, split in product(shared, _STAGES, _SPLITS):
            yield GemmConfig(*tile, stages, GROUPS[-1], split, a, b, size)
    yield from async_configs(problem)
    yield from gemv_configs(problem)
    plain = GemmConfig(*_TILES[0], 1, 1, 1, a, b)
    for width in vector_widths(problem.element):
        if width > a:
            yield replace(plain, vector_a=width)
        if width > b:
            yield replace(plain, vector_b=width)


def common_configs(problem: GemmProblem, groups: tuple[int, ...]) -> Iterator[GemmConfig]:
    """Those of the instruction size that every target serves."""
    a, b = problem.widest()
    for tile, stages, group in product(_TILES, _STAGES, groups):
        for split in (*_SPLITS, *(_MORE_SPLITS if min(tile[:2]) < _FEW else ())):
            yield GemmConfig(*tile, stages, group, split, a, b)


def async_configs(problem: GemmProblem) -> Iterator[GemmConfig]:
    """Those with asynchronous copies, which only some targets have."""
    a, b = problem.widest()
    for tile, stages, split in product(_ASYNC_TILES, _ASYNC_STAGES, _ASYNC_SPLITS):
        if split == 1 or tile[0] * tile[1] <= _SPLIT_AREA:
            yield GemmConfig(*tile, stages, GROUPS[-1], split, a, b, async_copies=1)


def gemv_configs(problem: GemmProblem) -> Iterator[GemmConfig]:
    """Those of a few rows, where there are no more."""
    rows = next((most for most in _GEMV_ROWS if problem.m <= most), None)
    if rows is None or not problem.along_k:
        return
    width = min(problem.widest())
    for tile in _GEMV_TILES:
        yield GemmConfig(rows, *tile, 1, GROUPS[0], 1, width, width, gemv=1)


@cache
def waves_along_m(block_m: int, block_n: int, waves: int, size: int = COMMON_SIZE) -> int:
    """As ``kiln::mma::waves_along_m``: 0 where the waves cannot share the block out."""
    best, least = 0, 1 << 30
    for along_m in range(1, waves + 1):
        along_n = waves // along_m
        if waves % along_m or block_m % (along_m * size) or block_n % (along_n * size):
            continue
        reads = block_m // along_m + block_n // along_n
        if reads < least:
            best, least = along_m, reads
    return best


def instruction(
    element: DType, gpu: HipHardware, size: int = COMMON_SIZE
) -> MatrixInstruction | None:
    """What a GPU multiplies tiles of ``size`` rows and columns with; None: plain FMA."""
    return select(gpu.processor, element.label, size)


def step_k(element: DType, gpu: HipHardware, size: int = COMMON_SIZE) -> int:
    """Elements along k that one step of ``kiln::mma::Tile`` takes."""
    found = instruction(element, gpu, size)
    return _FMA_STEP_K if found is None else found.step_k


def reject(
    config: GemmConfig, problem: GemmProblem, targets: tuple[Target, ...]
) -> Rejected | None:
    """The first rule that the configuration breaks, or None."""
    if not problem.element.is_float:
        return illegal(f"no matrix kernel for elements of type {problem.element.label}")
    for name, width, obstacles in (
        ("A", config.vector_a, problem.obstacles_a),
        ("B", config.vector_b, problem.obstacles_b),
    ):
        obstacle = dict(obstacles).get(width, f"{name} has no loads of {width} elements")
        if obstacle:
            nbytes = width * problem.element.itemsize
            return illegal(f"loads of {nbytes} bytes: {obstacle}, no multiple of {width}")
    if config.split_k > 1 and problem.k < 2 * config.block_k * config.split_k:
        return illegal(
            f"split-K {config.split_k} leaves k={problem.k} fewer than two steps of"
            f" {config.block_k} a part"
        )
    if config.async_copies:
        copied = _copy_obstacle(config, problem)
        if copied:
            return illegal(f"no asynchronous copies: {copied}")
    for target in targets:
        rejected = _reject_for(config, problem, hip_hardware(target))
        if rejected is not None:
            return rejected
    return None


def _copy_obstacle(config: GemmConfig, problem: GemmProblem) -> str:
    if problem.copy_obstacle:
        return problem.copy_obstacle
    for name, vector in (("A", config.vector_a), ("B", config.vector_b)):
        nbytes = vector * problem.element.itemsize
        if nbytes not in _COPY_BYTES:
            return f"{name} is read {nbytes} bytes at a time, not 4, 8 or 16"
    return ""


def _most_held(config: GemmConfig, problem: GemmProblem, gpu: HipHardware) -> int:
    """Registers that a lane may hold."""
    if config.async_copies:
        return _MAX_HELD_WITH_COPIES
    most = _MAX_HELD_REGISTERS[gpu.architecture]
    if isinstance(gpu, AmdHardware) and gpu.architecture == "cdna":
        waves = -(-config.threads // (gpu.wavefront * gpu.simds_per_cu))  # of a SIMD
        most = min(most, gpu.vgprs_per_simd // waves - _BESIDE_HELD[config.size])
    return max(most, _least_held(problem, gpu, config.size))


def _reject_for(config: GemmConfig, problem: GemmProblem, gpu: HipHardware) -> Rejected | None:
    element, size, words = problem.element, config.size, gpu.words
    if config.gemv:
        return _reject_gemv(config, problem, gpu)
    if size != COMMON_SIZE and instruction(element, gpu, size) is None:
        return illegal(
            f"no {size}x{size} matrix instruction for elements of type {element.label}"
            f" on {gpu.processor}"
        )
    if config.async_copies and not gpu.copies_asynchronously:
        return illegal(f"no asynchronous copies to {words.shared} on {gpu.processor}")
    lds, most = config.lds_bytes(element), gpu.max_lds_per_block_bytes
    if lds > most:
        return illegal(f"{lds} bytes of {words.shared}, more than the {most} of {gpu.processor}")
    held, most = held_registers(config, problem), _most_held(config, problem, gpu)
    if held > most:
        return illegal(
            f"a {words.lane} holds {held} registers, more than the {most} of {gpu.processor}"
        )
    waves = config.threads // gpu.wavefront
    if waves_along_m(config.block_m, config.block_n, waves, size) == 0:
        return illegal(
            f"{config.block_m}x{config.block_n} has no {size}x{size} tile for each of the {waves}"
            f" {plural(words.wave)} on {gpu.processor}"
        )
    step = step_k(element, gpu, size)
    if config.block_k % step:
        return illegal(f"BLOCK_K {config.block_k} is no multiple of {step} on {gpu.processor}")
    return None


def _reject_gemv(config: GemmConfig, problem: GemmProblem, gpu: HipHardware) -> Rejected | None:
    if problem.element.label not in _GEMV_ELEMENTS:
        return illegal(f"no sums of few rows for elements of type {problem.element.label}")
    if not problem.along_k or config.vector_a != config.vector_b:
        return illegal("lanes that sum along k read both operands along it, equally far")
    waves, step = config.threads // gpu.wavefront, config.vector_b * gpu.wavefront
    if config.block_n % waves:
        return illegal(
            f"{config.block_n} columns cannot be shared out among {waves} {plural(gpu.words.wave)}"
        )
    if config.block_k % step:
        return illegal(f"BLOCK_K {config.block_k} is no multiple of the {step} of a wave's load")
    # Of each load its data and an address of up to two registers.
    rows, loads = config.block_m + config.block_n // waves, config.block_k // step
    held = rows * loads * (max(config.vector_b * problem.element.itemsize // 4, 1) + 2)
    most = _MAX_HELD_REGISTERS[gpu.architecture]
    if held > most:
        return illegal(
            f"a {gpu.words.lane} holds {held} registers, more than the {most} of {gpu.processor}"
        )
    return None
