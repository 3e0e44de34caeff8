"""Cycles of matrix instructions, against the published rates and passes."""

from __future__ import annotations

import pytest

from scheduler import targets
from scheduler.cycles import matrix
from scheduler.targets.amd import amd_hardware
from scheduler.targets.model import hip_hardware
from scheduler.targets.modelled import TARGETS


@pytest.mark.parametrize(
    ("mnemonic", "processor", "passes"),
    [
        # LLVM's SISchedule.td and the CDNA 2 and 3 documents, in passes of 4 cycles.
        ("v_mfma_f32_16x16x16f16", "gfx90a", 8),
        ("v_mfma_f32_32x32x8f16", "gfx90a", 16),
        ("v_mfma_f32_32x32x4f16", "gfx90a", 16),
        ("v_mfma_f32_16x16x4f16", "gfx90a", 8),
        ("v_mfma_f32_16x16x16bf16_1k", "gfx90a", 8),
        ("v_mfma_f32_16x16x4f32", "gfx90a", 8),
        ("v_mfma_f32_32x32x1f32", "gfx90a", 16),
        ("v_mfma_f32_4x4x1f32", "gfx90a", 2),
        ("v_mfma_f32_16x16x16_f16", "gfx942", 4),
        ("v_mfma_f32_32x32x8_f16", "gfx942", 8),
        ("v_mfma_f32_16x16x16_bf16", "gfx942", 4),
        ("v_mfma_f32_16x16x4_f32", "gfx942", 8),
        ("v_mfma_f32_32x32x2_f32", "gfx942", 16),
        ("v_mfma_f64_16x16x4_f64", "gfx942", 8),
        ("v_mfma_f64_4x4x4_4b_f64", "gfx942", 4),
        ("v_mfma_f32_16x16x32_fp8_fp8", "gfx942", 4),
        ("v_mfma_f32_32x32x16_fp8_fp8", "gfx942", 8),
        ("v_mfma_i32_16x16x32_i8", "gfx942", 4),
        ("v_mfma_f32_16x16x8_xf32", "gfx942", 4),
        ("v_mfma_f32_16x16x32_f16", "gfx950", 4),
        ("v_mfma_f32_32x32x16_bf16", "gfx950", 8),
        ("v_mfma_f64_16x16x4_f64", "gfx950", 16),
        ("v_mfma_f32_16x16x128_f8f6f4", "gfx950", 8),
        ("v_smfmac_f32_16x16x32_f16", "gfx942", 4),
    ],
)
def test_passes(mnemonic: str, processor: str, passes: int) -> None:
    assert matrix.cycles(mnemonic, processor) == 4 * passes


@pytest.mark.parametrize(("processor", "expected"), [("gfx1100", 32), ("gfx1201", 16)])
def test_wmma(processor: str, expected: int) -> None:
    assert matrix.cycles("v_wmma_f32_16x16x16_f16", processor) == expected


def test_other_instructions_have_none() -> None:
    assert matrix.cycles("v_fma_f32", "gfx942") is None
    assert matrix.flops("v_fma_f32") == 0


@pytest.mark.parametrize("target", TARGETS)
def test_the_fastest_of_each_type_has_the_boards_rate(target: str) -> None:
    """The published rate of each board, and no instruction is faster than that."""
    board = targets.boards(target)[0]
    simds = amd_hardware(targets.find(target)).simds_per_cu
    best: dict[str, float] = {}
    for one in hip_hardware(targets.find(target)).matrix_instructions:
        name = f"v_{one.name}".removesuffix("_gfx12")
        length = matrix.cycles(name.removesuffix("_w32"), target)
        if length is not None and one.compute_type in board.matrix:
            rate = simds * 2 * one.m * one.n * one.k / length
            best[one.compute_type] = max(best.get(one.compute_type, 0), rate)
    assert best == {element: board.matrix[element] for element in best}
    assert {"f16"} <= set(best)


@pytest.mark.parametrize(
    ("half", "whole", "passes"),
    [
        ("v_mfma_f32_16x16x16_f16", "v_mfma_f32_16x16x32_f16", 4),
        ("v_mfma_f32_32x32x8_f16", "v_mfma_f32_32x32x16_f16", 8),
        ("v_mfma_f32_16x16x16_bf16", "v_mfma_f32_16x16x32_bf16", 4),
        ("v_mfma_f32_32x32x8_bf16", "v_mfma_f32_32x32x16_bf16", 8),
    ],
)
def test_half_of_the_k_takes_as_many_passes(half: str, whole: str, passes: int) -> None:
    """An MI355X has instructions of twice the k that an MI300X has; those are no faster there."""
    assert matrix.cycles(half, "gfx950") == matrix.cycles(whole, "gfx950") == 4 * passes
    assert matrix.cycles(half, "gfx942") == 4 * passes
    assert matrix.flops(whole) == 2 * matrix.flops(half)
