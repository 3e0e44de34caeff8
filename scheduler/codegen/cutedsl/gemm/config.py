"""Configurations of the CuteDSL matrix product: all of them, the valid ones, the default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import chain, product

from scheduler.arithmetic import ceil_div
from scheduler.codegen.kernel import ConfigValue
from scheduler.codegen.legality import illegal
from scheduler.errors import Rejected
from scheduler.ir.dtypes import DType
from scheduler.targets import Target, hopper
from scheduler.targets.generations import NVIDIA_GPUS
from scheduler.targets.model import HipHardware, hip_hardware

_BOARD = hopper.BOARDS[0]
MULTIPROCESSORS = _BOARD.compute_units  # the number of persistent blocks
ELEMENTS = (DType.F16, DType.BF16)
VECTOR = 8  # columns of a row that a thread stores
_WARPGROUP_THREADS = 128
_COOPERATIVE, _PINGPONG = "cooperative", "pingpong"
FUSED, SEPARATE = "fused", "separate"

# (block_m, block_n, block_k, multiplying warpgroups, schedule, stages)
_TILES = (
    (128, 256, 64, 2, _COOPERATIVE, (4, 3)),
    (256, 128, 64, 2, _COOPERATIVE, (4, 3)),
    (128, 192, 64, 2, _COOPERATIVE, (5, 4)),
    (128, 128, 64, 2, _COOPERATIVE, (6, 4)),
    (128, 64, 64, 2, _COOPERATIVE, (6, 4)),
    (128, 128, 64, 2, _PINGPONG, (6, 5)),
    (64, 256, 64, 2, _PINGPONG, (5, 4)),
    (64, 128, 64, 2, _PINGPONG, (6, 4)),
    (64, 256, 64, 1, _COOPERATIVE, (5,)),
    (64, 128, 64, 1, _COOPERATIVE, (8, 4)),
    (64, 128, 128, 1, _COOPERATIVE, (4,)),
    (64, 64, 128, 1, _COOPERATIVE, (6,)),
    (64, 32, 128, 1, _COOPERATIVE, (8,)),
)
_CLUSTERS = ((2, 1), (1, 2), (1, 1))
_SPLITS = (1, 2, 4, 8)
_GROUP_M = 8
# Maximum accumulators of a thread, of 232 registers: the epilogue needs some besides them.
_MAX_ACCUMULATORS = 128
_BARRIER_BYTES = 1024  # the barriers of all stages, up to the start of the tiles

# Figures of an H200 for the estimate, each per multiprocessor and clock.
_MULTIPLIES_PER_CLOCK = _BOARD.matrix["f16"] // 2  # with their additions; bf16 likewise
_L2_BYTES_PER_CLOCK = 50
_DRAM_BYTES_PER_CLOCK = 18
_MIN_STEP_CLOCKS = 450  # from barrier to barrier
_TILE_END_CLOCKS = 2500  # if nothing hides it
# Relative time if neighbouring blocks load windows together and the cluster adds no tile. It was
# 0.84 to 0.95 for 3x3 convolutions on an H100; a smaller gain is assumed here, since a tile that
# suits the problem matters more.
_SHARED_WINDOWS_FACTOR = 0.98
_LAUNCH_CLOCKS = 6000


@dataclass(frozen=True)
class GemmConfig:
    """One way to tile a product. Numbers are constants of the source, in upper case.

    ``consumers`` warpgroups multiply; with the cooperative schedule they share a tile, with
    pingpong each has a tile of its own and stores it while the other multiplies. ``cluster_m`` x
    ``cluster_n`` blocks load the tiles that they share once. ``split_k`` parts of k go to different
    blocks; a second kernel adds them. ``epilogue`` and ``prologue`` are "" if the problem has none.
    """

    block_m: int
    block_n: int
    block_k: int
    stages: int
    cluster_m: int
    cluster_n: int
    consumers: int
    group_m: int
    split_k: int
    schedule: str
    epilogue: str = ""
    prologue: str = ""

    def items(self) -> dict[str, ConfigValue]:
        """Return the parameters, named as in the kernel and the ledger."""
        strings = {name: getattr(self, name) for name in _STRING_FIELDS}
        return self.numbers() | {name: value for name, value in strings.items() if value}

    def numbers(self) -> dict[str, int]:
        """Return the constants of the source."""
        return {name.upper(): getattr(self, name) for name in _INT_FIELDS}

    @staticmethod
    def create(config: Mapping[str, ConfigValue]) -> GemmConfig:
        """Create from a candidate's mapping; raises ``KeyError`` if a name is missing."""
        numbers = {name: int(config[name.upper()]) for name in _INT_FIELDS}
        strings = {name: str(config.get(name, "")) for name in _STRING_FIELDS}
        return GemmConfig(**numbers, **strings)  # type: ignore[arg-type]

    @property
    def pingpong(self) -> bool:
        return self.schedule == _PINGPONG

    @property
    def separate_sums(self) -> bool:
        """Whether a second kernel stores the results, from sums in the workspace."""
        return self.split_k > 1 or self.epilogue == SEPARATE

    @property
    def threads(self) -> int:
        """Return the threads of a block: one warpgroup loads."""
        return (1 + self.consumers) * _WARPGROUP_THREADS

    def shared_bytes(self, element: DType) -> int:
        """Return the bytes of both tiles of every stage, and of their barriers."""
        stage_bytes = (self.block_m + self.block_n) * self.block_k * element.itemsize
        return _BARRIER_BYTES + self.stages * stage_bytes

    def accumulators(self) -> int:
        """Return the number of sums that a thread holds."""
        warpgroups_per_tile = 1 if self.pingpong else self.consumers
        return self.block_m * self.block_n // (warpgroups_per_tile * _WARPGROUP_THREADS)


_STRING_FIELDS = ("schedule", "epilogue", "prologue")
_INT_FIELDS = tuple(f.name for f in fields(GemmConfig) if f.name not in _STRING_FIELDS)


@dataclass(frozen=True)
class GemmProblem:
    """The inputs of the rules: the element type, sizes at the hints, and obstacles to TMA.

    ``obstacle_a`` is why A cannot be loaded by TMA in place, or ""; ``kernel_obstacle`` is why the
    kernel as a whole is not possible. ``epilogue``: something is computed from the sums before they
    are stored. ``obstacle_windows`` is why A cannot be loaded window by window; if it is "", its
    windows have ``channels``.
    """

    element: DType
    batches: int
    m: int
    n: int
    k: int
    obstacle_a: str = ""
    obstacle_b: str = ""
    kernel_obstacle: str = ""
    epilogue: bool = False
    obstacle_windows: str = ""
    channels: int = 0

    @property
    def prologue(self) -> bool:
        return bool(self.obstacle_a or self.obstacle_b)


def all_configs(problem: GemmProblem) -> Iterator[GemmConfig]:
    """Yield every configuration, in a fixed order, before any rule."""
    epilogues = (FUSED, SEPARATE) if problem.epilogue else ("",)
    prologues = (SEPARATE, FUSED) if problem.prologue else ("",)
    prologues = prologues[::-1] if problem.channels else prologues
    for tile, cluster, split in product(_TILES, _CLUSTERS, _SPLITS):
        block_m, block_n, block_k, consumers, schedule, all_stages = tile
        for stages in all_stages:
            yield GemmConfig(
                block_m, block_n, block_k, stages, *cluster, consumers, _GROUP_M, split,
                schedule, epilogues[0], prologues[0],
            )  # fmt: skip
    # Other options are tried with the first tile only: their cost does not depend on the tile.
    first = _TILES[0]
    for epilogue, prologue in product(epilogues, prologues):
        if (epilogue, prologue) != (epilogues[0], prologues[0]):
            yield GemmConfig(
                *first[:3], first[5][0], *_CLUSTERS[0], first[3], _GROUP_M, 1,
                first[4], epilogue, prologue,
            )  # fmt: skip


def reject(
    config: GemmConfig, problem: GemmProblem, targets: tuple[Target, ...]
) -> Rejected | None:
    """Return the first rule that the configuration breaks, or None."""
    gpus = tuple(map(hip_hardware, targets))
    obstacles = chain(_problem_obstacles(problem, gpus), _obstacles(config, problem, gpus))
    obstacle = next(obstacles, "")
    return illegal(obstacle) if obstacle else None


def _problem_obstacles(problem: GemmProblem, gpus: tuple[HipHardware, ...]) -> Iterator[str]:
    """Yield why no configuration is valid."""
    for gpu in gpus:
        if not gpu.has_wgmma:
            yield (
                f"CuteDSL matrix products are not supported on {gpu.processor}: wgmma requires "
                f"{', '.join(nvidia.specific for nvidia in NVIDIA_GPUS if nvidia.has_wgmma)}"
            )
    if problem.element not in ELEMENTS:
        yield (
            f"CuteDSL matrix products of {problem.element.label} are not supported: wgmma "
            "multiplies f16 and bf16 (it would truncate 13 bits of f32; where that is "
            "allowed, HIP kernels round to tf32)"
        )
    if problem.kernel_obstacle:
        yield problem.kernel_obstacle


def _obstacles(
    config: GemmConfig, problem: GemmProblem, gpus: tuple[HipHardware, ...]
) -> Iterator[str]:
    """Yield why the configuration is not valid: its schedule, epilogue and prologue; sizes (their
    hints) that leave parts without work; the hardware's limits."""
    if config.pingpong and config.split_k > 1:
        yield "split-K gives parts of different lengths, but pingpong needs equal lengths"
    if config.split_k > 1 and config.epilogue == SEPARATE:
        yield "split-K already stores its sums separately"
    if config.prologue == FUSED and problem.obstacle_windows:
        windows = f", or as windows: {problem.obstacle_windows}" if problem.obstacle_a else ""
        yield f"{problem.obstacle_a or problem.obstacle_b}, so TMA cannot load it in place{windows}"
    if config.prologue == FUSED and problem.channels % config.block_k:
        channels_text = f"{problem.channels} channels of a window"
        yield f"BLOCK_K {config.block_k} does not divide the {channels_text}"
    if config.split_k > 1 and problem.k < 2 * config.block_k * config.split_k:
        yield (
            f"split-K {config.split_k} leaves fewer than two steps of {config.block_k} per "
            f"part of k={problem.k}"
        )
    for name, cluster, block, extent in (
        ("m", config.cluster_m, config.block_m, problem.m),
        ("n", config.cluster_n, config.block_n, problem.n),
    ):
        if cluster > max(ceil_div(extent, block), 1):
            yield f"a cluster of {cluster} tiles of {block} exceeds {name}={extent}"
    shared, accumulators = config.shared_bytes(problem.element), config.accumulators()
    for gpu in gpus:
        limit = gpu.max_lds_per_block_bytes
        if shared > limit:
            yield f"{shared} bytes of shared memory exceed the limit of {limit} on {gpu.processor}"
    if accumulators > _MAX_ACCUMULATORS:
        yield f"{accumulators} accumulators per thread exceed the limit of {_MAX_ACCUMULATORS}"


def estimate_clocks(config: GemmConfig, problem: GemmProblem) -> float:
    """Return clocks of the whole product on an H200, roughly. For the default only: tuning
    measures."""
    tiles_m = ceil_div(problem.m, config.block_m * config.cluster_m) * config.cluster_m
    tiles_n = ceil_div(problem.n, config.block_n * config.cluster_n) * config.cluster_n
    blocks = tiles_m * tiles_n * problem.batches * config.split_k
    rounds = ceil_div(blocks, MULTIPROCESSORS)
    steps = ceil_div(ceil_div(problem.k, config.split_k), config.block_k)
    itemsize = problem.element.itemsize
    tile_area = config.block_m * config.block_n
    multiply_clocks = tile_area * config.block_k / _MULTIPLIES_PER_CLOCK
    loaded_rows = config.block_m / config.cluster_n + config.block_n / config.cluster_m
    load_clocks = loaded_rows * config.block_k * itemsize / _L2_BYTES_PER_CLOCK
    min_clocks = _MIN_STEP_CLOCKS * config.block_k / 64
    tile_end_clocks = _TILE_END_CLOCKS * tile_area / (128 * 256)
    operand_bytes = (problem.m + problem.n) * problem.k * itemsize * problem.batches
    dram_bytes_per_clock = _DRAM_BYTES_PER_CLOCK * MULTIPROCESSORS
    bytes_per_clock = max(min(dram_bytes_per_clock, _L2_BYTES_PER_CLOCK * blocks), 1)
    loop_clocks = steps * max(multiply_clocks, load_clocks, min_clocks)
    tile_clocks = loop_clocks + tile_end_clocks
    # With pingpong a tile's end is hidden if multiplying the next tile takes as long.
    next_tile_clocks = max(loop_clocks, tile_clocks / 2) if config.pingpong else tile_clocks
    clocks = max(tile_clocks + (rounds - 1) * next_tile_clocks, operand_bytes / bytes_per_clock)
    # Of equals, the one with less wasted multiplication.
    clocks += 0.02 * rounds * steps * multiply_clocks
    shares_windows = config.prologue == FUSED and problem.channels > 0 and config.cluster_n > 1
    if shares_windows and tiles_n == ceil_div(problem.n, config.block_n):
        clocks *= _SHARED_WINDOWS_FACTOR
    if config.prologue == SEPARATE and problem.channels:
        packed_bytes = problem.batches * problem.m * problem.k * itemsize * 2
        clocks += _LAUNCH_CLOCKS + packed_bytes / dram_bytes_per_clock
    if config.separate_sums:
        sum_bytes = problem.batches * problem.m * problem.n * 4 * 2 * config.split_k
        clocks += _LAUNCH_CLOCKS + sum_bytes / dram_bytes_per_clock
    return clocks


@lru_cache(maxsize=4096)
def default_config(problem: GemmProblem, targets: tuple[Target, ...]) -> GemmConfig | None:
    """Return the valid configuration with the lowest ``estimate_clocks`` on every target; None if
    there is none.

    A model's layers repeat their problems, so results are cached.
    """
    by_time = sorted(all_configs(problem), key=lambda config: estimate_clocks(config, problem))
    return next((config for config in by_time if reject(config, problem, targets) is None), None)
