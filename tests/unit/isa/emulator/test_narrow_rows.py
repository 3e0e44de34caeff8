"""Floats of 8, 6 and 4 bits: every code, every place of rounding, selects and scales."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scheduler.ir import encoding
from scheduler.isa.rocm.emulator.alu.elements import ELEMENTS, FNUZ, pack_codes, unpack_codes
from scheduler.isa.rocm.emulator.alu.minifloat import FNUZ_FORMATS, FORMATS, MinifloatFormat
from tests.unit.isa.emulator.rows import ROWS, Array, block

_ALL = [
    *((name, form, ELEMENTS[name].decode) for name, form in FORMATS.items()),
    *((f"{name}fnuz", form, FNUZ[name].decode) for name, form in FNUZ_FORMATS.items()),
]


def bits(values: Any) -> Array:
    """One register of one wave for each value: [1, 1, lanes]."""
    return np.atleast_1d(np.float32(values)).view(np.uint32).reshape(1, 1, -1)


def run(name: str, processor: str, *blocks: Array, **modifiers: tuple[int, ...]) -> Array:
    with np.errstate(all="ignore"):
        found: Array = block(name, processor).compute(*blocks, modifiers=modifiers)
    return found


def codes_of(form: MinifloatFormat) -> Array:
    return np.arange(1 << form.bits, dtype=np.uint32)


@pytest.mark.parametrize(("name", "form", "decode"), _ALL, ids=[each[0] for each in _ALL])
def test_every_code_is_what_its_own_number_becomes(
    name: str, form: MinifloatFormat, decode: Any
) -> None:
    codes = codes_of(form)
    values = decode(codes)
    numbers = np.isfinite(values)
    assert (form.round_nearest(values[numbers]) == codes[numbers]).all()
    assert (
        form.round_stochastic(values[numbers], np.full(numbers.sum(), 2**32 - 1)) == codes[numbers]
    ).all()
    assert np.isnan(decode(form.round_nearest(np.array([np.nan])))).all() or form.bits < 8


@pytest.mark.parametrize(("name", "form", "decode"), _ALL, ids=[each[0] for each in _ALL])
def test_what_lies_between_goes_to_the_nearer_and_ties_to_even(
    name: str, form: MinifloatFormat, decode: Any
) -> None:
    positive = np.arange(form.largest + 1, dtype=np.uint32)
    values = decode(positive)
    low, high = values[:-1], values[1:]
    middle = (low + high) / 2
    even = np.where(positive[:-1] % 2 == 0, positive[:-1], positive[1:])
    assert (form.round_nearest(middle) == even).all()
    assert (form.round_nearest(middle + (high - low) / 64) == positive[1:]).all()
    assert (form.round_nearest(middle - (high - low) / 64) == positive[:-1]).all()
    negative = decode(form.round_nearest(-middle))
    assert (negative == -decode(even)).all()
    quarter = low + (high - low) / 4
    assert (form.round_stochastic(quarter, np.full(low.size, 2**31)) == positive[:-1]).all()
    assert (form.round_stochastic(quarter, np.full(low.size, 7 * 2**29)) == positive[1:]).all()


def test_numbers_of_8_bits_are_those_of_torchs_types() -> None:
    codes = np.arange(256, dtype=np.uint32)
    for name, table in (("fp8", encoding.E4M3FN), ("bf8", encoding.E5M2)):
        assert np.array_equal(ELEMENTS[name].decode(codes), table.values, equal_nan=True)
    for name, table in (("fp8", encoding.E4M3FNUZ), ("bf8", encoding.E5M2FNUZ)):
        assert np.array_equal(FNUZ[name].decode(codes), table.values, equal_nan=True)


def test_numbers_of_6_and_4_bits_are_those_of_the_isa_document() -> None:
    """CDNA4 ISA, table 30."""
    assert ELEMENTS["fp4"].decode(np.arange(8)).tolist() == [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    six = ELEMENTS["fp6"].decode(np.array([0b11111, 0b01000, 0b00001, 0b111111]))
    assert six.tolist() == [7.5, 1.0, 0.125, -7.5]
    wide = ELEMENTS["bf6"].decode(np.array([0b11111, 0b00100, 0b00001]))
    assert wide.tolist() == [28.0, 0.25, 0.0625]


def test_the_same_code_means_another_number_on_gfx942() -> None:
    one, zero = bits([1.0]), bits([0.0])
    assert run("v_cvt_pk_fp8_f32", "gfx942", one, zero, zero)[0, 0, 0] == 0x40
    assert run("v_cvt_pk_fp8_f32", "gfx950", one, zero, zero)[0, 0, 0] == 0x38
    beyond = bits([1e6])
    assert run("v_cvt_pk_fp8_f32", "gfx942", beyond, zero, zero)[0, 0, 0] == 0x80
    assert run("v_cvt_pk_fp8_f32", "gfx950", beyond, zero, zero)[0, 0, 0] == 0x7F
    assert run("v_cvt_pk_bf8_f32", "gfx950", beyond, zero, zero)[0, 0, 0] == 0x7C


def test_a_half_or_a_byte_is_written_and_the_others_stay() -> None:
    one, two = bits([1.0]), bits([2.0])
    old = np.full((1, 1, 1), 0x11223344, np.uint32)
    low = run("v_cvt_pk_fp8_f32", "gfx950", one, two, old)
    high = run("v_cvt_pk_fp8_f32", "gfx950", one, two, old, op_sel=(0, 0, 1))
    assert (low[0, 0, 0], high[0, 0, 0]) == (0x11224038, 0x40383344)
    for byte, expected in enumerate((0x11223338, 0x11223844, 0x11383344, 0x38223344)):
        select = (0, 0, byte & 1, byte >> 1)
        got = run("v_cvt_sr_fp8_f32", "gfx950", one, bits([0.0]), old, op_sel=select)
        assert got[0, 0, 0] == expected
        named = run("v_cvt_sr_fp8_f32", "gfx1201", one, bits([0.0]), old, byte_sel=(byte,))
        assert named[0, 0, 0] == expected


def test_bytes_are_widened() -> None:
    packed = np.array([0x40384838], np.uint32)
    compute = ROWS["v_cvt_f32_fp8"].compute  # the last row: of CDNA 4
    assert compute(packed).tolist() == [1.0]
    pair = ROWS["v_cvt_pk_f32_fp8"].compute(packed >> 16)
    assert np.array([pair[0]]).view(np.float32).tolist() == [1.0, 2.0]
    block_of = packed.reshape(1, 1, 1)
    wide = run(
        "v_cvt_pk_f32_fp8", "gfx1201", block_of, np.zeros((1, 2, 1), np.uint32), op_sel=(1, 0)
    )
    assert wide[0, :, 0].view(np.float32).tolist() == [1.0, 2.0]


def test_scales_divide_on_the_way_down_and_multiply_on_the_way_up() -> None:
    four, old = bits([4.0]), np.zeros((1, 1, 1), np.uint32)
    down = run("v_cvt_scalef32_pk_fp8_f32", "gfx950", bits([8.0]), bits([-6.0]), four, old)
    up = run("v_cvt_scalef32_pk_f32_fp8", "gfx950", down, four, np.zeros((1, 2, 1), np.uint32))
    assert up[0, :, 0].view(np.float32).tolist() == [8.0, -6.0]
    # Only the exponent of a scale counts.
    same = run("v_cvt_scalef32_pk_fp8_f32", "gfx950", bits([8.0]), bits([-6.0]), bits([7.9]), old)
    assert (same == down).all()


def test_32_numbers_of_6_bits_lie_side_by_side_and_come_back() -> None:
    rng = np.random.default_rng(0)
    numbers = ELEMENTS["fp6"].decode(rng.integers(0, 64, (1, 32, 4)))
    halves = pack_codes(numbers.astype(np.float16).view(np.uint16), 16)
    scale = np.full((1, 1, 4), 127 << 23, np.uint32)
    packed = run(
        "v_cvt_scalef32_pk32_fp6_f16", "gfx950", halves, scale, np.zeros((1, 6, 4), np.uint32)
    )
    assert packed.shape == (1, 6, 4)
    assert (ELEMENTS["fp6"].decode(unpack_codes(packed, 6)) == numbers).all()
    back = run(
        "v_cvt_scalef32_pk32_f32_fp6", "gfx950", packed, scale, np.zeros((1, 32, 4), np.uint32)
    )
    assert (back.view(np.float32) == numbers).all()
    first, second = numbers[:, ::2], numbers[:, 1::2]
    two = [pack_codes(each.astype(np.float32).view(np.uint32), 32) for each in (first, second)]
    in_turn = run(
        "v_cvt_scalef32_2xpk16_fp6_f32", "gfx950", *two, scale, np.zeros((1, 6, 4), np.uint32)
    )
    assert (in_turn == packed).all()
