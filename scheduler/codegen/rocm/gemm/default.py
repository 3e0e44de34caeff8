"""The default configuration of the matrix templates: the fastest by an estimate."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import chain

from scheduler.codegen.rocm.gemm.candidates import (
    GROUP_SIZES,
    async_configs,
    common_configs,
    direct_configs,
    gemv_configs,
    other_size_configs,
    stream_k_blocks,
    stream_k_configs,
)
from scheduler.codegen.rocm.gemm.config import GemmConfig, reject, tile_count
from scheduler.codegen.rocm.gemm.estimate import estimate_ratios
from scheduler.codegen.rocm.gemm.problem import GemmProblem
from scheduler.codegen.rocm.machine import machine_of
from scheduler.targets import Target
from scheduler.targets.amd import AmdHardware
from scheduler.targets.model import hip_hardware

_DIRECT_STAGES, _MIN_DIRECT_AREA = 3, 256 * 128
_CLEAR_GAIN = 1.1  # smallest difference that the cycle model resolves


@lru_cache(maxsize=4096)
def default_config(problem: GemmProblem, targets: tuple[Target, ...]) -> GemmConfig | None:
    """Return the configuration with the lowest estimate among those valid on every target; None if
    there is none.

    If every target copies asynchronously and the operands allow it, only those with copies count.
    Stream-K is used only on AMD's GPUs, if it is fastest. Matrix instructions of other sizes are
    tried if the estimates of all targets distinguish them from the common ones. Candidates are
    checked fastest first, since the rules cost more. A model's layers repeat their problems, so
    results are cached.
    """
    gpus = [hip_hardware(target) for target in targets]
    if all(gpu.copies_asynchronously for gpu in gpus):
        fastest = _fastest_legal(async_configs(problem), problem, targets)
        if fastest is not None:
            return fastest
    costs = [machine_of(target, problem.element).costs for target in targets]
    sizes_differ = all(cost.wide_result is not None for cost in costs)
    # In the cycle model, direct loads are good with large tiles, two steps for a load to arrive,
    # and priority for waves that multiply.
    direct_candidates = (
        config
        for config in direct_configs(problem)
        if config.setprio
        and config.stages == _DIRECT_STAGES
        and config.block_m * config.block_n >= _MIN_DIRECT_AREA
    )
    candidates = chain(
        common_configs(problem, GROUP_SIZES[-1:]),
        other_size_configs(problem) if sizes_differ else (),
        gemv_configs(problem),
        direct_candidates,
    )
    fastest = _fastest_legal(candidates, problem, targets)
    if all(isinstance(gpu, AmdHardware) for gpu in gpus):
        return _prefer_stream_k(fastest, problem, targets)
    return fastest


def _prefer_stream_k(
    other: GemmConfig | None, problem: GemmProblem, targets: tuple[Target, ...]
) -> GemmConfig | None:
    """Return a Stream-K configuration if it is clearly faster than ``other``. Applies if each block
    has a whole tile, since few tiles can be split as well without it."""
    blocks = stream_k_blocks(targets, problem.element)
    configs = (
        config
        for config in stream_k_configs(problem, blocks)
        if not config.async_copies and tile_count(config, problem) > config.stream_k
    )
    stream_k = _fastest_legal(configs, problem, targets)
    if stream_k is None or other is None:
        return stream_k or other
    ratios = estimate_ratios((stream_k, other), problem, targets)
    return stream_k if ratios[stream_k] * _CLEAR_GAIN <= ratios[other] else other


def _fastest_legal(
    configs: Iterable[GemmConfig], problem: GemmProblem, targets: tuple[Target, ...]
) -> GemmConfig | None:
    ratios = estimate_ratios(configs, problem, targets)
    by_time = sorted(ratios, key=ratios.__getitem__)
    return next((config for config in by_time if reject(config, problem, targets) is None), None)
