"""Sparse and scaled matrix instructions, and dot products, against plain ones."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.isa.rocm.emulator.alu.elements import ELEMENTS, unpack_codes
from tests.unit.isa.emulator.rows import Array, block

_WIDE = ("fp8", "bf8")


def _k_of(lane_group: int, item: int, groups: int, bits: int) -> int:
    """CDNA4 ISA 7.1.5.1: of 8 bits two runs of 16 a lane, otherwise one of 32."""
    if bits == 8:
        return 16 * lane_group + item % 16 + 16 * groups * (item // 16)
    return 32 * lane_group + item


def _matrix(codes: Array, name: str, rows: int) -> Array:
    """[rows, k] of the codes [items, lanes] of one wave."""
    element = ELEMENTS[name]
    values = element.decode(codes)
    groups = 64 // rows
    matrix = np.zeros((rows, 32 * groups))
    for item in range(32):
        for lane in range(64):
            k = _k_of(lane // rows, item, groups, element.bits)
            matrix[lane % rows, k] = values[item, lane]
    return matrix


@pytest.mark.parametrize("size", [16, 32])
@pytest.mark.parametrize("formats", [(0, 0), (1, 4), (2, 3), (4, 0)])
def test_formats_and_scales_of_f8f6f4(size: int, formats: tuple[int, int]) -> None:
    names = [("fp8", "bf8", "fp6", "bf6", "fp4")[each] for each in formats]
    rng = np.random.default_rng(0)
    operands, matrices, scales = [], [], []
    for name in names:
        bits = ELEMENTS[name].bits
        packed = rng.integers(0, 2**32, (1, bits, 64), dtype=np.uint32)
        if bits == 8:
            packed &= np.uint32(0x9F9F9F9F)  # no NaN, nothing large
        operands.append(packed)
        matrices.append(_matrix(unpack_codes(packed, bits)[0], name, size))
        scales.append(rng.integers(124, 131, (1, 1, 64), dtype=np.uint32) << np.uint32(8))
    c = rng.standard_normal((1, size * size // 64, 64)).astype(np.float32).view(np.uint32)
    text = "16x16x128" if size == 16 else "32x32x64"
    select = {"cbsz": (formats[0],), "blgp": (formats[1],)}
    plain = block(f"v_mfma_f32_{text}_f8f6f4", "gfx950").compute(*operands, c, modifiers=select)
    none = np.zeros_like(c)
    zero = block(f"v_mfma_f32_{text}_f8f6f4", "gfx950").compute(*operands, none, modifiers=select)
    product = matrices[0] @ matrices[1].T
    assert np.isclose(_result(zero, size), product, rtol=1e-6, atol=1e-6).all()
    assert np.isclose(_result(plain, size) - _result(c, size), product, rtol=1e-5, atol=1e-3).all()
    for scale, matrix in zip(scales, matrices, strict=True):
        for row in range(size):
            for start in range(0, matrix.shape[1], 32):
                exponent = int(scale[0, 0, row + size * (start // 32)] >> 8) - 127
                matrix[row, start : start + 32] *= 2.0**exponent
    got = block(f"v_mfma_scale_f32_{text}_f8f6f4", "gfx950").compute(
        *operands, none, *scales, modifiers=select | {"op_sel": (1, 1, 0), "op_sel_hi": (0, 0, 0)}
    )
    assert np.isclose(_result(got, size), matrices[0] @ matrices[1].T, rtol=1e-6, atol=1e-6).all()


def _result(block_of: Array, size: int) -> Array:
    """[rows, columns]: CDNA3 ISA 7.1.4.2, four rows in neighbouring registers."""
    values = block_of.view(np.float32)[0].astype(np.float64)
    matrix = np.zeros((size, size))
    for register in range(values.shape[0]):
        for lane in range(64):
            group = lane // size
            row = register % 4 + 4 * group + 4 * (64 // size) * (register // 4)
            matrix[row, lane % size] = values[register, lane]
    return matrix


@pytest.mark.parametrize("part", [0, 2])
def test_a_sparse_product_is_that_of_the_matrix_with_its_zeros(part: int) -> None:
    rng = np.random.default_rng(1)
    stored = rng.integers(-4, 5, (16, 16)).astype(np.float64)
    b = rng.integers(-4, 5, (32, 16)).astype(np.float64)
    dense = np.zeros((16, 32))
    index = np.zeros((1, 1, 64), np.uint32)
    a_codes, b_codes = np.zeros((4, 64)), np.zeros((8, 64))
    for lane in range(64):
        row, group = lane % 16, lane // 16
        for pair in range(2):
            places = sorted(rng.choice(4, 2, replace=False))
            for number, place in enumerate(places):
                item = 2 * pair + number
                value = stored[row, 4 * group + item]
                a_codes[item, lane] = value
                dense[row, 8 * group + 4 * pair + place] = value
                index[0, 0, lane] |= np.uint32(int(place) << (2 * item + 8 * part))
        b_codes[:, lane] = b[8 * group : 8 * group + 8, row]
    left, right = (
        np.ascontiguousarray(
            each.astype(np.float16).view(np.uint16).reshape(-1, 2, 64).transpose(0, 2, 1)
        ).view(np.uint32)[None, ..., 0]
        for each in (a_codes, b_codes)
    )
    old = np.ones((1, 4, 64), np.float32).view(np.uint32)
    row_of = block("v_smfmac_f32_16x16x32_f16", "gfx942")
    got = row_of.compute(left, right, index, old, modifiers={"abid": (part,)})
    assert (_result(got, 16) == dense @ b + 1).all()


def test_dot_products() -> None:
    a = np.array([[[0x01FF7F80]]], np.uint32)
    b = np.array([[[0x02020202]]], np.uint32)
    c = np.array([[[10]]], np.uint32)

    def dot(name: str, processor: str = "gfx942", **modifiers: tuple[int, ...]) -> int:
        found = block(name, processor).compute(a, b, c, modifiers=modifiers)
        return int(found.view(np.int32)[0, 0, 0])

    assert dot("v_dot4_i32_i8") == 10 + 2 * (1 - 1 + 127 - 128)
    assert dot("v_dot4_u32_u8") == 10 + 2 * (1 + 255 + 127 + 128)
    assert dot("v_dot4_i32_iu8", neg_lo=(1, 0, 0)) == 10 + 2 * (1 - 1 + 127 - 128)
    assert dot("v_dot8_u32_u4") == 10 + 2 * (0x1 + 0xF + 0xF + 0x0)
    halves = np.array([[[0x40003C00]]], np.uint32)  # 1, 2
    total = np.float32([[[0.5]]]).view(np.uint32)
    row = block("v_dot2_f32_f16", "gfx942")
    assert row.compute(halves, halves, total, modifiers={}).view(np.float32)[0, 0, 0] == 5.5
    crossed = row.compute(
        halves, halves, total, modifiers={"op_sel": (1, 0, 0), "op_sel_hi": (0, 1, 1)}
    )
    assert crossed.view(np.float32)[0, 0, 0] == 4.5
