"""Buffers: offsets, strides, what is out of range, loads straight to LDS."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.isa.emulator.kernels import IN, LOAD, STORE, execute

DATA = np.arange(1000, 1512, dtype=np.uint32)
DESCRIPTOR = """
s_mov_b32 s12, s6
s_mov_b32 s13, s7
s_mov_b32 s14, 0x80
s_mov_b32 s15, 0x27000
"""
"""128 bytes from IN."""


def test_reads_out_of_range_are_zero_and_touch_nothing() -> None:
    body = "buffer_load_dword v3, v1, s[12:15], 0 offen offset:8"
    done = execute(f"{LOAD}\n{DESCRIPTOR}\n{body}\n{STORE}", DATA)
    assert done.words(64).tolist() == [1002 + lane if lane < 30 else 0 for lane in range(64)]
    access = done.run.traces[0].accesses[10]
    assert access.lanes.tolist() == list(range(30))
    assert access.addresses[0] == IN + 8
    assert not done.run.findings


def test_scalar_and_fixed_offsets_count() -> None:
    body = "s_movk_i32 s9, 0x10\nbuffer_load_dword v3, off, s[12:15], s9 offset:4"
    done = execute(f"{LOAD}\n{DESCRIPTOR}\n{body}\n{STORE}", DATA)
    assert set(done.words(64).tolist()) == {1005}


def test_records_have_a_stride() -> None:
    body = """
    s_or_b32 s13, s13, 0x80000
    s_mov_b32 s14, 20
    buffer_load_dword v3, v0, s[12:15], 0 idxen offset:4
    """
    done = execute(f"{LOAD}\n{DESCRIPTOR}\n{body}\n{STORE}", DATA)
    assert done.words(64).tolist() == [1001 + 2 * lane if lane < 20 else 0 for lane in range(64)]


def test_stores_out_of_range_are_dropped() -> None:
    body = """
    s_mov_b32 s12, s4
    s_mov_b32 s13, s5
    buffer_store_dword v2, v1, s[12:15], 0 offen
    """
    done = execute(f"{LOAD}\n{DESCRIPTOR}\n{body}", DATA)
    assert done.words(64).tolist() == [1000 + lane if lane < 32 else 0 for lane in range(64)]


@pytest.mark.parametrize(("kind", "words"), [("dword", 1), ("dwordx4", 4)])
def test_loads_go_straight_to_lds(kind: str, words: int) -> None:
    """Lane after lane from where M0 says."""
    body = f"""
    s_mov_b32 s14, 0x800
    v_lshlrev_b32_e32 v4, {1 + words // 2 if words == 1 else 4}, v0
    s_mov_b32 m0, 0x40
    s_nop 0
    buffer_load_{kind} v4, s[12:15], 0 offen offset:16 lds
    s_waitcnt vmcnt(0)
    v_lshlrev_b32_e32 v5, {2 if words == 1 else 4}, v0
    ds_read_b32 v3, v5 offset:80
    """
    if words == 1:
        body = body.replace("v_lshlrev_b32_e32 v4, 1,", "v_lshlrev_b32_e32 v4, 2,")
    done = execute(f"{LOAD}\n{DESCRIPTOR}\n{body}\n{STORE}", DATA, lds=2048, processor="gfx950")
    assert done.words(64).tolist() == [1004 + words * lane for lane in range(64)]


def test_scratch_of_gfx90a_is_a_buffer() -> None:
    body = """
    s_mov_b64 s[12:13], 0
    s_mov_b32 s14, -1
    s_mov_b32 s15, 0x00800000
    buffer_store_dword v2, off, s[12:15], 0 offset:4
    buffer_load_dword v3, off, s[12:15], 0 offset:4
    """
    done = execute(f"{LOAD}\n{body}\n{STORE}", DATA, processor="gfx90a", scratch=8)
    assert done.words(64).tolist() == DATA[:64].tolist()


def test_rules_of_gfx11_are_the_descriptors() -> None:
    body = """
    s_load_b128 s[4:7], s[0:1], 0x0
    s_waitcnt lgkmcnt(0)
    s_mov_b32 s12, s6
    s_mov_b32 s13, s7
    s_mov_b32 s14, 0x40
    s_mov_b32 s15, 0x31014000
    v_lshlrev_b32_e32 v1, 2, v0
    buffer_load_b32 v3, v1, s[12:15], 0 offen
    s_waitcnt vmcnt(0)
    global_store_b32 v1, v3, s[4:5]
    """
    done = execute(body, DATA, processor="gfx1100", threads=32)
    assert done.words(32).tolist() == [1000 + lane if lane < 16 else 0 for lane in range(32)]
