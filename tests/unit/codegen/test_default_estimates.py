"""The estimates behind the defaults of attention and of shared rows on AMD's GPUs."""

from __future__ import annotations

import pytest

from scheduler.codegen.rocm.attention.estimate import AttentionProblem, estimate_attention
from scheduler.codegen.rocm.attention.shape import AttentionConfig, AttentionShape
from scheduler.codegen.rocm.machine import machine_of, minimax_candidate, worst_ratios
from scheduler.codegen.rocm.reduction.configs import Split
from scheduler.codegen.rocm.reduction.estimate import estimate_split as shared_rows
from scheduler.ir.dtypes import DType
from scheduler.targets import find
from scheduler.targets.amd import amd_hardware

F16 = DType.F16
SHAPE = AttentionShape(F16, 128, 128)
MI300X = machine_of(find("gfx942"), F16)
LARGE, SMALL = AttentionConfig(128, 64, 256), AttentionConfig(32, 32, 64)


def time_us(config: AttentionConfig, batch: int, rows: int, columns: int) -> float:
    problem = AttentionProblem(batch, rows, columns, rows == columns)
    return estimate_attention(config, problem, SHAPE, amd_hardware(find("gfx942")), MI300X)


def split(splits: int) -> AttentionConfig:
    return AttentionConfig(32, 32, 64, splits)


def test_one_query_shares_its_keys_among_blocks() -> None:
    """As many as occupy the device: fewer leave units idle, more are more to combine."""
    times = {splits: time_us(split(splits), 32, 1, 4096) for splits in (1, 4, 16, 32, 64)}
    assert times[1] > times[4] > times[16]
    assert min(times, key=lambda splits: times[splits]) in (32, 64)
    assert time_us(split(64), 512, 1, 1024) > time_us(split(4), 512, 1, 1024)


def test_many_queries_have_large_tiles_where_the_device_is_full() -> None:
    assert time_us(LARGE, 32, 4096, 4096) < time_us(SMALL, 32, 4096, 4096)


def test_no_attention_is_faster_than_memory() -> None:
    read_us = 32 * 2 * 16384 * 128 * 2 / MI300X.bytes_per_us
    assert time_us(split(32), 32, 1, 16384) > read_us


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950"])
def test_tiles_whose_registers_crowd_take_longer(target: str) -> None:
    """64 columns of 128 deep keys in one wave leave a SIMD no second one."""
    gpu, machine = amd_hardware(find(target)), machine_of(find(target), F16)
    problem = AttentionProblem(32, 1, 16384, uneven=False)
    wide, narrow = AttentionConfig(32, 64, 64, 16), AttentionConfig(32, 32, 64, 16)
    assert not SHAPE.has_ample_registers(wide, gpu)
    times = [estimate_attention(one, problem, SHAPE, gpu, machine) for one in (wide, narrow)]
    assert times[0] > times[1]


def test_threads_of_a_shared_row_have_few_steps() -> None:
    """A row of a vocabulary: each step waits for memory; more blocks with half the pack have as
    many, and each takes less."""
    times = {
        (split, vector): shared_rows(128256, 1, 2, Split(256, vector, split=split), MI300X)
        for split, vector in ((2, 8), (8, 8), (8, 4), (16, 4))
    }
    assert times[2, 8] > times[8, 4] > times[8, 8] > times[16, 4]


def test_of_several_machines_the_one_that_fares_worst_counts() -> None:
    times = [{"a": 1.0, "b": 2.0}.__getitem__, {"a": 9.0, "b": 3.0}.__getitem__]
    assert worst_ratios("ab", times) == {"a": 3.0, "b": 2.0}
    assert minimax_candidate("ab", times) == "b"
