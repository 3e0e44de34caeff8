"""Matrix instructions against plain products, with layouts that were stated elsewhere."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from scheduler import matrix_instructions
from scheduler.ir.dtypes import DType
from scheduler.ir.encoding import to_bits
from scheduler.isa.rocm.emulator.alu.elements import ELEMENTS, encode_values, pack_codes
from scheduler.isa.rocm.emulator.alu.matrix_layouts import mfma_input, mfma_result
from scheduler.isa.rocm.emulator.alu.row import Modifiers
from scheduler.isa.rocm.emulator.tables import BLOCK_ROWS
from scheduler.isa.rocm.instruction_set.spellings import canonical_name
from scheduler.matrix_instructions import Layout, MatrixInstruction
from scheduler.targets.generations import AMD_GPUS
from tests.unit.isa.emulator.rows import Array, block

NARROW = ("i8", "f8e4m3fn", "f8e5m2")
FORMATS = {"f8e4m3fn": 0, "f8e5m2": 1}  # of v_mfma_f32_16x16x128_f8f6f4: CDNA4 ISA, 7.1
_AMD = [
    (one, gpu.processor)
    for one in matrix_instructions.INSTRUCTIONS
    for gpu in AMD_GPUS
    if gpu.emulated and one in gpu.matrix_instructions
]


def filled(matrix: Array, layout: Layout, items: int, lanes: int, element: str) -> Array:
    """Registers of one wave that hold a matrix."""
    values = np.zeros((1, items, lanes))
    for item in range(items):
        for lane in range(lanes):
            values[0, item, lane] = matrix[layout.evaluate(lane, item)]
    if element in NARROW:
        dtype = DType.from_label(element)
        codes = values.astype(np.int8).view(np.uint8) if element == "i8" else to_bits(values, dtype)
        return pack_codes(codes, 8)
    return pack_codes(encode_values(values, element), ELEMENTS[element].bits)


def mnemonic(one: MatrixInstruction) -> str:
    plain = one.name.removesuffix("_gfx12").removesuffix("_w32")
    return "v_" + (plain[: -len("_fp8")] if "f8f6f4" in plain else plain)


def modifiers(one: MatrixInstruction) -> Modifiers:
    """What a kernel writes behind the operands: signed integers, the format of each operand."""
    if "iu8" in one.name:
        return {"neg_lo": (1, 1, 0)}
    if "f8f6f4" in one.name:
        return {"cbsz": (FORMATS[one.element],), "blgp": (FORMATS[one.element],)}
    return {}


@pytest.mark.parametrize(("one", "processor"), _AMD, ids=lambda each: getattr(each, "name", each))
def test_a_product_is_the_plain_one(one: MatrixInstruction, processor: str) -> None:
    rng = np.random.default_rng(0)
    parts = 1 if one.accumulator == "i32" else 4
    a = rng.integers(-8, 9, (one.m, one.k)).astype(np.float64) / parts
    b = rng.integers(-8, 9, (one.k, one.n)).astype(np.float64) / parts
    c = rng.integers(-8, 9, (one.m, one.n)).astype(np.float64)
    name = mnemonic(one)
    row = block(canonical_name(name), processor)
    blocks = [
        filled(a, one.a, one.a_values, one.lanes, one.register_type),
        filled(b, one.b, one.b_values, one.lanes, one.register_type),
        filled(c, one.d, one.d_values, one.lanes, one.accumulator),
    ]
    assert tuple(each.shape[1] for each in blocks) == row.sources
    waves = [np.concatenate([each, np.zeros_like(each)]) for each in blocks]
    got = row.compute(*waves, modifiers=modifiers(one))
    expected = filled(a @ b + c, one.d, one.d_values, one.lanes, one.accumulator)
    assert (got[0] == expected[0]).all()
    assert (got[1] == 0).all()


@pytest.mark.parametrize("name", ["v_mfma_f32_16x16x8_xf32", "v_mfma_f32_32x32x4_xf32"])
def test_of_xf32_10_bits_of_mantissa_are_multiplied(name: str) -> None:
    """The others are cut off, whatever they are."""
    row = block(name, "gfx942")
    ones = np.ones((1, row.sources[0], 64), np.float32).view(np.uint32)
    sums = np.zeros((1, row.sources[2], 64), np.uint32)
    largest = float.fromhex("0x1.ffcp127")
    for bits, taken in ((0x3F801FFF, 1.0), (0xBF802FFF, -(1 + 2.0**-10)), (0x7F7FFFFF, largest)):
        given = np.zeros_like(ones)
        given[0, 0, 0] = bits  # A's first element
        got = row.compute(given, ones, sums, modifiers={}).view(np.float32)
        assert set(got[0, 0, : 16 if "16x16" in name else 32]) == {np.float32(taken)}


def test_places_are_those_of_the_isa_documents_examples() -> None:
    """CDNA3 ISA 7.1.3: the drawings of four instructions, some of their cells."""
    wide = mfma_result(32, 32, 2, 4)
    cells = {(0, 0): (0, 0, 0), (0, 63): (0, 4, 31), (3, 32): (0, 7, 0), (15, 63): (0, 31, 31)}
    cells |= {(16, 0): (1, 0, 0), (31, 31): (1, 27, 31)}
    for (item, lane), place in cells.items():
        at = (item, lane)
        assert (wide.block[at], wide.row[at], wide.column[at]) == place
    small = mfma_result(4, 4, 16, 4)
    assert (small.block[3, 63], small.row[3, 63], small.column[3, 63]) == (15, 3, 3)
    assert (small.block[0, 4], small.row[0, 4], small.column[0, 4]) == (1, 0, 0)
    double = mfma_result(16, 16, 1, 1)
    assert (double.row[1, 16], double.column[1, 16]) == (5, 0)
    assert (double.row[3, 63], double.column[3, 63]) == (15, 15)
    halves = mfma_input(4, 4, 16)
    assert (halves.item[1, 0, 3], halves.lane[1, 0, 3]) == (3, 4)
    doubles = mfma_input(16, 4, 1)
    assert (doubles.item[0, 15, 3], doubles.lane[0, 15, 3]) == (0, 63)


def test_every_place_of_every_instruction_is_used_once() -> None:
    for m, n, k, blocks in ((32, 32, 4, 2), (16, 16, 4, 4), (4, 4, 4, 16), (16, 16, 128, 1)):
        a = mfma_input(m, k, blocks)
        places = sorted(zip(a.item.ravel(), a.lane.ravel(), strict=True))
        assert all(left != right for left, right in pairwise(places))
        d = mfma_result(m, n, blocks, 4)
        elements = set(zip(d.block.ravel(), d.row.ravel(), d.column.ravel(), strict=True))
        assert len(elements) == m * n * blocks


def test_one_block_of_a_is_broadcast_and_lanes_of_b_are_permuted() -> None:
    row = block("v_mfma_f32_32x32x1f32", "gfx942")
    rng = np.random.default_rng(1)
    a = rng.integers(-8, 9, (1, 1, 64)).astype(np.float32).view(np.uint32)
    b = rng.integers(-8, 9, (1, 1, 64)).astype(np.float32).view(np.uint32)
    c = np.zeros((1, 32, 64), np.uint32)
    second = np.concatenate([a[..., 32:], a[..., 32:]], axis=-1)
    got = row.compute(a, b, c, modifiers={"cbsz": (1,), "abid": (1,)})
    assert (got == row.compute(second, b, c, modifiers={})).all()
    got = row.compute(a, b, c, modifiers={"blgp": (3,)})
    assert (got == row.compute(a, np.roll(b, -16, axis=-1), c, modifiers={})).all()


def test_integers_are_exact_and_wrap() -> None:
    row = block("v_mfma_i32_32x32x8i8", "gfx90a")
    a = np.full((1, 1, 64), 0x80808080, np.uint32)  # -128 four times
    c = np.full((1, 16, 64), 0x7FFFFFFF, np.uint32)
    got = row.compute(a, a, c, modifiers={})
    assert (got == np.uint32((0x7FFFFFFF + 8 * 128 * 128) & 0xFFFFFFFF)).all()


def test_gfx90a_flushes_denormals_of_f16_and_gfx942_does_not() -> None:
    tiny = np.full((1, 2, 64), 0x00010001, np.uint32)
    ones = np.full((1, 2, 64), 0x3C003C00, np.uint32)
    c = np.zeros((1, 4, 64), np.uint32)
    name = "v_mfma_f32_16x16x16f16"
    assert not block(name, "gfx90a").compute(tiny, ones, c, modifiers={}).any()
    kept = block(name, "gfx942").compute(tiny, ones, c, modifiers={}).view(np.float32)
    assert (kept == 16 * 2.0**-24).all()


def test_formats_of_8_bits_mean_what_the_processor_says() -> None:
    name = "v_mfma_f32_16x16x32_fp8_fp8"
    ones = np.full((1, 2, 64), 0x38383838, np.uint32)  # OCP: 1, fnuz: 0.5
    c = np.zeros((1, 4, 64), np.uint32)
    assert (block(name, "gfx950").compute(ones, ones, c, modifiers={}).view(np.float32) == 32).all()
    assert (block(name, "gfx942").compute(ones, ones, c, modifiers={}).view(np.float32) == 8).all()


def test_each_name_is_once_on_each_processor() -> None:
    for gpu in AMD_GPUS:
        names = [row.name for row in BLOCK_ROWS if not row.needs or row.needs in gpu.features]
        assert len(names) == len(set(names))
