"""The estimate behind the default configuration: what it must know of a board and a shape."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.codegen.rocm.gemm.config import GemmConfig
from scheduler.codegen.rocm.gemm.default import default_config
from scheduler.codegen.rocm.gemm.estimate import estimate_gemm_us, estimate_ratios
from scheduler.codegen.rocm.gemm.problem import GemmProblem
from scheduler.codegen.rocm.machine import machine_of
from scheduler.ir.dtypes import DType
from scheduler.targets import boards, find, names

WIDE = ((8, ""), (4, ""), (1, ""))


def problem(m: int, n: int, k: int) -> GemmProblem:
    return GemmProblem(DType.F16, 1, m, n, k, WIDE, WIDE)


def chosen(m: int, n: int, k: int, *targets: str) -> GemmConfig:
    found = default_config(problem(m, n, k), tuple(map(find, targets)))
    assert found is not None
    return found


def blocks(config: GemmConfig, m: int, n: int) -> int:
    return -(-m // config.block_m) * -(-n // config.block_n) * config.split_k


def test_a_machine_is_the_targets_first_board() -> None:
    machine, board = machine_of(find("gfx942"), DType.F16), boards("gfx942")[0]
    assert machine.units == board.compute_units
    assert machine.rate == board.matrix["f16"]
    assert machine_of(find("cpu"), DType.F16) == machine
    assert machine_of(find("gfx1151"), DType.F16).wavefront == 32


@pytest.mark.parametrize("target", names())
def test_every_target_is_some_machine(target: str) -> None:
    machine = machine_of(find(target), DType.F32)
    assert min(machine.units, machine.rate, machine.bytes_per_us, machine.lds_bytes) > 0


def test_no_time_is_shorter_than_reading_the_operands() -> None:
    machine = machine_of(find("gfx942"), DType.F16)
    for m, n, k in ((1, 14336, 4096), (4096, 4096, 4096)):
        config = chosen(m, n, k, "gfx942")
        read_us = 2 * (m + n) * k / machine.bytes_per_us
        assert estimate_gemm_us(config, problem(m, n, k), machine) >= read_us


@pytest.mark.parametrize("size", [(0, 512, 64), (512, 0, 64), (512, 512, 0)], ids=str)
@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "sm_90"])
def test_what_is_empty_has_a_default_too(size: tuple[int, int, int], target: str) -> None:
    assert chosen(*size, target)


def test_few_rows_of_a_long_k_are_shared_by_many_blocks() -> None:
    config = chosen(16, 4096, 14336, "gfx942")
    assert config.block_m <= 32
    assert blocks(config, 16, 4096) >= 256


def test_few_rows_on_rdna_are_as_fast_as_their_weights_arrive() -> None:
    """Two compute units share a block's memory: tiles are wider than one alone would want, and the
    next is on its way while one is multiplied. Short products and large ones are as they were."""
    machine = machine_of(find("gfx1100"), DType.F16)
    assert (machine.cus_per_wgp, machine.as_wgp().units) == (2, machine.units // 2)
    assert machine.as_wgp().rate * machine.as_wgp().units == machine.rate * machine.units
    config = chosen(64, 14336, 4096, "gfx1100")
    assert (config.block_n, config.stages, config.split_k) == (128, 2, 1)
    one_buffer = replace(config, stages=1)
    for m, k, differs in ((64, 4096, True), (64, 768, False), (4096, 4096, False)):
        shape = problem(m, 14336 if differs else 4096, k)
        alone = replace(machine, cus_per_wgp=1)
        known = (
            estimate_gemm_us(one_buffer, shape, machine),
            estimate_gemm_us(one_buffer, shape, alone),
        )
        assert (known[0] < known[1]) == differs
        assert (known[0] == known[1]) == (not differs)


def test_a_large_product_has_large_tiles_and_no_parts_of_k() -> None:
    config = chosen(4096, 4096, 4096, "gfx942")
    assert config.block_m * config.block_n >= 128 * 128
    assert config.split_k == 1


def test_a_small_board_needs_fewer_blocks_than_a_large_one() -> None:
    """As many tiles as a small board has units leave most of a large one idle."""
    shape = problem(512, 1024, 1024)
    large = machine_of(find("gfx942"), DType.F16)
    small = replace(large, units=16)
    coarse = GemmConfig(128, 128, 32, 256, 1, 8, 1, 8, 8)
    fine = GemmConfig(64, 64, 32, 128, 1, 8, 1, 8, 8)
    assert estimate_gemm_us(fine, shape, large) < estimate_gemm_us(coarse, shape, large)
    assert estimate_gemm_us(coarse, shape, small) < estimate_gemm_us(fine, shape, small)


def test_parts_of_k_cost_another_kernel() -> None:
    machine, shape = machine_of(find("gfx942"), DType.F16), problem(4096, 4096, 2048)
    whole = GemmConfig(128, 128, 32, 256, 1, 8, 1, 8, 8)
    assert estimate_gemm_us(whole, shape, machine) < estimate_gemm_us(
        replace(whole, split_k=4), shape, machine
    )


def test_of_several_targets_the_one_that_fares_worst_counts() -> None:
    shape, targets = problem(256, 4096, 4096), (find("gfx942"), find("gfx1100"))
    configs = [
        GemmConfig(128, 128, 32, 256, 1, 8, 1, 8, 8),
        GemmConfig(64, 64, 32, 128, 1, 8, 1, 8, 8),
    ]
    alone = [estimate_ratios(configs, shape, (target,)) for target in targets]
    both = estimate_ratios(configs, shape, targets)
    assert both == {one: max(each[one] for each in alone) for one in configs}
    assert min(alone[0].values()) == 1.0


def test_windows_are_read_from_memory_once() -> None:
    """As often as they overlap, they share elements; results are stored besides."""
    machine, shape = machine_of(find("gfx942"), DType.F16), problem(100352, 64, 576)
    config = GemmConfig(64, 64, 64, 256, 1, 8, 1, 8, 8)
    windows = replace(shape, distinct_a=1 / 9)
    assert estimate_gemm_us(config, windows, machine) < estimate_gemm_us(config, shape, machine)
    stored = 2 * shape.m * shape.n / machine.bytes_per_us
    assert estimate_gemm_us(config, windows, machine) > stored


def test_32x32_instructions_are_tried_where_it_is_known_what_they_take() -> None:
    sizes = {target: chosen(4096, 3072, 768, target).size for target in ("gfx942", "gfx90a")}
    assert sizes == {"gfx942": 32, "gfx90a": 16}
    assert chosen(4096, 4096, 4096, "gfx942").size == 16, "their reads of longer rows conflict"


def test_one_row_is_read_by_enough_blocks() -> None:
    """Whose units each ask memory for less: 80 blocks of 16 columns would leave most without."""
    config = default_config(replace(problem(1, 1280, 5120), along_k=True), (find("gfx942"),))
    assert config is not None
    assert (config.gemv, config.block_n) == (1, 8)
