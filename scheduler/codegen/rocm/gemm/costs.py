"""Cost terms of matrix product estimates."""

from __future__ import annotations

from scheduler.codegen.rocm.gemm.config import GemmConfig, GemmProblem, tile_count
from scheduler.codegen.rocm.machine import Machine


def has_wide_result_cost(machine: Machine) -> bool:
    """Whether the cost of 32x32 instructions is known."""
    return machine.costs.wide_result is not None


def partial_sums(config: GemmConfig, problem: GemmProblem) -> int:
    """Return the elements that go through memory, to be added by another kernel."""
    if config.stream_k:
        parts = config.stream_k + tile_count(config, problem) % config.stream_k
        return parts * config.block_m * config.block_n
    if config.split_k == 1:
        return 0
    return problem.batches * problem.m * problem.n * config.split_k
