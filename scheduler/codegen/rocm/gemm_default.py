"""The default configuration of the matrix templates: the fastest by an estimate.

Two models, for the default only: tuning measures.
"""

from __future__ import annotations

from functools import lru_cache

from scheduler.codegen.rocm.gemm_config import (
    GROUPS,
    GemmConfig,
    GemmProblem,
    async_configs,
    common_configs,
    reject,
    waves_along_m,
)
from scheduler.targets import Target
from scheduler.targets.model import hip_hardware

# Compute units of a middling board; the default is the same for all targets, which share text.
_COMPUTE_UNITS = 96

# Of ``estimate_with_copies``, fitted to what an H200 took for bf16 at 4096x4096x4096,
# 1024x1024x1024 and 16x14336x4096 and for f32 at 2048x2048x2048; nanoseconds.
_SMS = 132
_REGISTERS, _MAX_REGISTERS = 65536, 255  # of an SM; of a thread
_OTHER_REGISTERS = 100  # of a thread beside its accumulators and the addresses of its copies
_SPILLED = 1.2
_SHARED_BYTES_PER_NS = 240.0
_PER_PRODUCT = {2: 0.00040, 4: 0.0055, 8: 0.0110}  # by bytes of an element
_ALONE, _ALONE_PER_ELEMENT = 8.0, 0.0035  # a warp's step along k that waits for itself
_BARRIER = 100.0
_LAUNCH, _BYTES_PER_NS = 8000.0, 2500.0
_READ_BYTES_PER_NS = 4000.0  # what is read once


def estimate(config: GemmConfig, problem: GemmProblem) -> float:
    """Time of the whole product, in steps of one matrix operation of 16x16x16, roughly.

    Rounds of blocks over the compute units, times what one block does: multiplications, reading
    its operands (a load of 16 bytes a thread costs about as much as two matrix operations), and
    storing its results. A model for the default only: tuning measures.
    """
    tiles = _blocks(problem.m, config.block_m) * _blocks(problem.n, config.block_n)
    steps = _blocks(_blocks(problem.k, config.split_k), config.block_k)
    area = config.block_m * config.block_n
    # A compute unit runs four waves at once: a block of fewer allows another beside it, if its LDS
    # does, and fewer waves than that leave units idle.
    together = max(1, 65536 // config.lds_bytes(problem.element))
    together = min(together, max(1, 256 // config.threads))
    idle = max(1.0, 256 / (together * config.threads))
    rounds = _blocks(tiles * problem.batches * config.split_k, _COMPUTE_UNITS * together)
    multiply = area * config.block_k / 4096 * together * idle
    read = (
        config.block_m * config.block_k / config.vector_a
        + config.block_n * config.block_k / config.vector_b
    ) * (2 * together / 256)
    barriers = 8 if config.stages == 1 else 5
    store = area / 256 * (4 if config.split_k > 1 else 1)
    launch = 2000 if config.split_k > 1 else 0
    return (
        rounds * (steps * (max(multiply, read) + 0.3 * min(multiply, read) + barriers) + store)
        + launch
    )


def estimate_with_copies(config: GemmConfig, problem: GemmProblem, shared_bytes: int) -> float:
    """Nanoseconds of the whole product on an SM's ``shared_bytes``, roughly.

    Rounds of blocks over the SMs, times k, times the most of: what a warp waits for itself, and
    what the SM's blocks take together of the multipliers and of shared memory. Parts of k are
    stored and added by another kernel.
    """
    warps, area = config.threads // 32, config.block_m * config.block_n
    registers = min(_MAX_REGISTERS, area // config.threads + _OTHER_REGISTERS)
    held = min(
        shared_bytes // config.lds_bytes(problem.element),
        _REGISTERS // (registers * config.threads),
    )
    tiles = _blocks(problem.m, config.block_m) * _blocks(problem.n, config.block_n)
    blocks = tiles * problem.batches * config.split_k
    together = max(1, min(held, _blocks(blocks, _SMS)))
    rounds = _blocks(blocks, _SMS * max(1, held))
    along_m = max(1, waves_along_m(config.block_m, config.block_n, warps))
    edges = config.block_m // along_m + config.block_n // (warps // along_m)
    read = together * warps * edges * problem.element.itemsize / _SHARED_BYTES_PER_NS
    multiplied = together * area * _PER_PRODUCT[problem.element.itemsize]
    alone = _ALONE + _ALONE_PER_ELEMENT * area / warps
    barriers = _BARRIER / config.block_k if together == 1 else 0.0  # another block goes on
    k = _blocks(problem.k, config.split_k)
    computed = rounds * k * (max(alone, multiplied + read) + barriers)
    copies = (
        (config.block_m + config.block_n) * config.block_k // (config.vector_a * config.threads)
    )
    if area // config.threads + _OTHER_REGISTERS + 2 * copies > _MAX_REGISTERS:
        computed *= _SPILLED
    given = problem.batches * (problem.m + problem.n) * problem.k * problem.element.itemsize
    time = max(computed, given / _READ_BYTES_PER_NS)
    if config.split_k == 1:
        return time
    partial = problem.batches * problem.m * problem.n * config.split_k
    return time + _LAUNCH + 2 * partial * problem.element.compute.itemsize / _BYTES_PER_NS


def _blocks(extent: int, block: int) -> int:
    return -(-extent // block)


@lru_cache(maxsize=4096)
def default_config(problem: GemmProblem, targets: tuple[Target, ...]) -> GemmConfig | None:
    """The fastest by an estimate of those that serve every target; None where none does.

    Where every target copies asynchronously, and the operands can be, those that do. The estimates
    do not distinguish instructions: only the common configurations are tried, the fastest first,
    since the rules cost more. A model's layers repeat their problems, so results are cached.
    """
    gpus = [hip_hardware(target) for target in targets]
    if all(gpu.copies_asynchronously for gpu in gpus):
        room = min(gpu.max_lds_per_block_bytes for gpu in gpus)
        copying = sorted(
            async_configs(problem), key=lambda one: estimate_with_copies(one, problem, room)
        )
        found = _first(copying, problem, targets)
        if found is not None:
            return found
    configs = common_configs(problem, GROUPS[-1:])
    by_time = sorted(configs, key=lambda config: estimate(config, problem))
    return _first(by_time, problem, targets)


def _first(
    configs: list[GemmConfig], problem: GemmProblem, targets: tuple[Target, ...]
) -> GemmConfig | None:
    return next((one for one in configs if reject(one, problem, targets) is None), None)
