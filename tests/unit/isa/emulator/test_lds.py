"""A block's LDS: pairs of addresses, widths, halves, what lies outside, transposing loads."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.isa.emulator.kernels import LOAD, STORE, execute

DATA = np.random.default_rng(2).integers(0, 1 << 32, 64, dtype=np.uint32)


def lanes(body: str, processor: str = "gfx942", lds: int = 4096) -> list[int]:
    done = execute(f"{LOAD}\n{body}\n{STORE}", DATA, processor=processor, lds=lds)
    return done.words(64).tolist()


def test_pairs_of_addresses_count_in_units() -> None:
    body = """
    v_not_b32_e32 v4, v2
    ds_write2_b32 v1, v2, v4 offset0:1 offset1:70
    ds_read_b32 v5, v1 offset:4
    ds_read_b32 v6, v1 offset:280
    ds_read2_b32 v[8:9], v1 offset0:1 offset1:70
    s_waitcnt lgkmcnt(0)
    v_xor_b32_e32 v3, v5, v6
    v_and_b32_e32 v3, v3, v8
    v_add_u32_e32 v3, v3, v9
    """
    assert lanes(body) == [0xFFFF_FFFF] * 64


def test_a_pair_is_recorded_with_both_addresses() -> None:
    body = f"{LOAD}\nds_read2st64_b32 v[4:5], v1 offset0:2 offset1:3"
    done = execute(body, DATA, lds=4096)
    access = done.run.traces[0].accesses[6]
    assert access.addresses.tolist() == [4 * lane + 512 for lane in range(64)]
    assert access.second is not None
    assert access.second.tolist() == [4 * lane + 768 for lane in range(64)]
    assert access.bytes == 4


def test_wide_and_small_accesses() -> None:
    body = """
    v_lshlrev_b32_e32 v4, 4, v0
    v_mov_b32_e32 v8, v2
    v_not_b32_e32 v9, v2
    v_mov_b32_e32 v10, v0
    v_mov_b32_e32 v11, 0
    ds_write_b128 v4, v[8:11]
    ds_write_b16_d16_hi v4, v2 offset:12
    ds_write_b8 v4, v2 offset:15
    ds_read_b96 v[12:14], v4
    ds_read_u16 v15, v4 offset:12
    ds_read_i8 v16, v4 offset:15
    s_waitcnt lgkmcnt(0)
    v_add_u32_e32 v3, v12, v13
    v_add_u32_e32 v3, v3, v14
    v_add_u32_e32 v3, v3, v15
    v_add_u32_e32 v3, v3, v16
    """
    expected = [
        (0xFFFF_FFFF + lane + (value >> 16) + (value & 255) - 2 * (value & 128)) & 0xFFFF_FFFF
        for lane, value in enumerate(DATA.tolist())
    ]
    assert lanes(body) == expected


def test_what_lies_outside_the_blocks_is_zero_and_found() -> None:
    body = "ds_write_b32 v1, v2\nds_read_b32 v3, v1"
    done = execute(f"{LOAD}\n{body}\n{STORE}", DATA, lds=128, grid=2, blocks=(0, 1))
    assert done.words(64).tolist() == [*DATA[:32].tolist(), *[0] * 32]
    assert {finding.what for finding in done.run.findings} == {
        "read outside the block's LDS",
        "write outside the block's LDS",
    }


def test_dynamic_lds_counts() -> None:
    body = f"{LOAD}\nds_write_b32 v1, v2\nds_read_b32 v3, v1\n{STORE}"
    done = execute(body, DATA, dynamic_lds=256)
    assert done.words(64).tolist() == DATA.tolist()


@pytest.mark.parametrize("bits", [16, 8, 4])
def test_loads_transpose_on_gfx950(bits: int) -> None:
    """Sixteen lanes hold a matrix row after row, and get its columns."""
    body = f"""
    v_lshlrev_b32_e32 v4, 3, v0
    v_not_b32_e32 v5, v2
    v_mov_b32_e32 v8, v2
    v_mov_b32_e32 v9, v5
    ds_write_b64 v4, v[8:9]
    ds_read_b64_tr_b{bits} v[6:7], v4
    s_waitcnt lgkmcnt(0)
    v_lshlrev_b32_e32 v1, 3, v0
    global_store_dwordx2 v1, v[6:7], s[4:5]
    """
    found = execute(f"{LOAD}\n{body}", DATA, processor="gfx950", lds=512).words(64, dtype="<u8")
    held = 64 // bits
    numbers = [int(value) | (~int(value) & 0xFFFF_FFFF) << 32 for value in DATA]
    elements = [number >> bits * at & (1 << bits) - 1 for number in numbers for at in range(held)]
    expected = []
    for lane in range(64):
        matrix = elements[lane // 16 * 16 * held :]
        column = [matrix[row * 16 + lane % 16] for row in range(held)]
        expected.append(sum(value << bits * at for at, value in enumerate(column)))
    assert found.tolist() == expected
