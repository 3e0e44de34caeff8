"""Memory by address: regions, pages made when touched, what lies outside, widths and halves."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from scheduler.isa.rocm.emulator.launch import Launch
from scheduler.isa.rocm.emulator.memory import PAGE, Memory, MemoryLimitError
from scheduler.isa.rocm.emulator.program import program_of
from scheduler.isa.rocm.emulator.run import run
from tests.unit.isa.emulator.kernels import IN, LOAD, OUT, STORE, execute, listing


def test_pages_are_made_when_they_are_touched_and_by_the_filler() -> None:
    asked: list[tuple[int, int]] = []

    def fill(offset: int, count: int) -> bytes:
        asked.append((offset, count))
        return b"".join(
            struct.pack("<I", at // 4 & 0xFFFF_FFFF) for at in range(offset, offset + count, 4)
        )

    memory = Memory()
    size = (1 << 36) + 512
    memory.map("large", 1 << 20, size, fill=fill)
    at = np.array([0, 4, 5 * PAGE + 8, 6 * PAGE, 1 << 36], np.int64)
    words, outside = memory.load((1 << 20) + at, 1)
    assert words.tolist() == [
        [0, 1, 5 * PAGE // 4 + 2, 6 * PAGE // 4, (1 << 36) // 4 & 0xFFFF_FFFF]
    ]
    assert not len(outside)
    assert asked == [(0, PAGE), (5 * PAGE, 2 * PAGE), (1 << 36, 512)]
    memory.load((1 << 20) + at, 1)
    assert len(asked) == 3


def test_bytes_lie_across_pages_and_regions() -> None:
    memory = Memory()
    memory.map("one", 0x1000, 0x1100, bytes(range(256)) * 17)
    memory.map("next", 0x2100, 256, b"\xaa" * 256)
    assert memory.read(0x1FFE, 4) == bytes([254, 255, 0, 1])
    words, _ = memory.load(np.array([0x1FFE, 0x20FE], np.int64), 1)
    assert words.tolist() == [[0x0100_FFFE, 0xAAAA_FFFE]]
    assert memory.load_small(np.array([0x1FFF], np.int64), 2)[0].tolist() == [0xFF]
    memory.write(0x20FF, b"\x01\x02")
    assert memory.read(0x20FE, 4) == b"\xfe\x01\x02\xaa"


def test_what_lies_outside_is_zero_and_named() -> None:
    memory = Memory()
    memory.map("one", 0x1000, 256, b"\xff" * 256)
    words, outside = memory.load(np.array([0x10FC, 0x10FE, 0x5000, -8], np.int64), 1)
    assert words.tolist() == [[0xFFFF_FFFF, 0xFFFF, 0, 0]]
    assert outside.tolist() == [0x10FE, 0x5000, -8]
    assert memory.store(np.array([0x5000], np.int64), np.array([[1]], np.uint32)).tolist() == [
        0x5000
    ]


def test_of_lanes_with_one_address_the_last_is_kept() -> None:
    memory = Memory()
    memory.map("one", 0x1000, 256)
    at = np.array([0x1000, 0x1004, 0x1000], np.int64)
    memory.store(at, np.array([[1, 2, 3]], np.uint32))
    assert memory.read(0x1000, 8) == struct.pack("<II", 3, 2)


@pytest.mark.parametrize("address", [0, 0x1001, 0x1100, 1 << 47])
def test_regions_are_aligned_and_do_not_overlap(address: int) -> None:
    memory = Memory()
    memory.map("one", 0x1000, 512)
    with pytest.raises(ValueError, match="two"):
        memory.map("two", address, 256)


def test_touched_pages_are_bounded() -> None:
    memory = Memory(pages=3)
    memory.map("one", 0x1000, 1 << 20)
    memory.read(0x1000, 1)
    with pytest.raises(MemoryLimitError):
        memory.load(0x1000 + np.arange(8, dtype=np.int64) * PAGE, 1)


# -- by instructions ------------------------------------------------------------------------------

DATA = np.random.default_rng(1).integers(0, 1 << 32, 512, dtype=np.uint32)
OCTETS = DATA.tobytes()


def lanes(body: str, processor: str = "gfx942") -> list[int]:
    return execute(f"{LOAD}\n{body}\n{STORE}", DATA, processor=processor).words(64).tolist()


SMALL = {
    "ubyte": lambda at: OCTETS[at],
    "sbyte": lambda at: struct.unpack_from("<b", OCTETS, at)[0],
    "ushort": lambda at: struct.unpack_from("<H", OCTETS, at)[0],
    "sshort": lambda at: struct.unpack_from("<h", OCTETS, at)[0],
    "short_d16": lambda at: 0x7777_0000 | struct.unpack_from("<H", OCTETS, at)[0],
    "short_d16_hi": lambda at: 0x7777 | struct.unpack_from("<H", OCTETS, at)[0] << 16,
    "ubyte_d16": lambda at: 0x7777_0000 | OCTETS[at],
    "sbyte_d16_hi": lambda at: 0x7777 | struct.unpack_from("<b", OCTETS, at)[0] << 16,
}


@pytest.mark.parametrize("kind", sorted(SMALL))
def test_small_loads_are_extended_and_halves_keep_the_other_one(kind: str) -> None:
    body = f"v_mov_b32_e32 v3, 0x77777777\nglobal_load_{kind} v3, v1, s[6:7] offset:6"
    expected = [SMALL[kind](4 * lane + 6) & 0xFFFF_FFFF for lane in range(64)]
    assert lanes(body) == expected


def test_wide_loads_and_negative_offsets() -> None:
    body = """
    v_lshlrev_b32_e32 v4, 4, v0
    v_mov_b32_e32 v5, s7
    v_add_co_u32_e32 v4, vcc, s6, v4
    v_addc_co_u32_e32 v5, vcc, 0, v5, vcc
    global_load_dwordx4 v[8:11], v[4:5], off offset:16
    global_load_dwordx3 v[12:14], v[4:5], off offset:16
    global_load_dwordx2 v[16:17], v[4:5], off offset:-8
    s_waitcnt vmcnt(0)
    v_xor_b32_e32 v3, v8, v9
    v_xor_b32_e32 v3, v3, v10
    v_xor_b32_e32 v3, v3, v11
    v_add_u32_e32 v3, v3, v14
    v_add_u32_e32 v3, v3, v17
    """
    words = [int(word) for word in DATA]
    expected = []
    for lane in range(64):
        at = 4 * lane
        four = words[at + 4] ^ words[at + 5] ^ words[at + 6] ^ words[at + 7]
        before = words[at - 1] if lane else 0  # before the buffer
        expected.append((four + words[at + 6] + before) & 0xFFFF_FFFF)
    done = execute(f"{LOAD}\n{body}\n{STORE}", DATA)
    assert done.words(64).tolist() == expected
    (finding,) = done.run.findings
    assert (finding.what, finding.address, finding.count) == ("read outside all buffers", IN - 8, 1)


def test_small_stores_write_no_more_than_they_say() -> None:
    body = """
    v_lshlrev_b32_e32 v4, 2, v0
    v_mov_b32_e32 v5, -1
    global_store_dword v4, v5, s[4:5]
    global_store_byte v4, v2, s[4:5]
    global_store_short_d16_hi v4, v2, s[4:5] offset:2
    """
    found = execute(f"{LOAD}\n{body}", DATA).words(64)
    expected = (DATA[:64] & 0xFFFF_0000) | 0xFF00 | (DATA[:64] & 0xFF)
    assert found.tolist() == expected.tolist()


def test_what_is_stored_outside_is_dropped_and_found() -> None:
    done = execute(f"{LOAD}\nv_mov_b32_e32 v1, 0x7fff0\nglobal_store_dword v1, v2, s[4:5]", DATA)
    (finding,) = done.run.findings
    assert (finding.what, finding.count) == ("write outside all buffers", 64)
    assert finding.address == OUT + 0x7FFF0
    assert not done.words(64).any()


def test_scratch_is_each_lanes_own() -> None:
    for processor, store, load in (
        (
            "gfx942",
            "scratch_store_dword off, v2, off offset:8",
            "scratch_load_dword v3, off, off offset:8",
        ),
        ("gfx942", "scratch_store_dword v5, v2, off", "scratch_load_dword v3, v5, off"),
        ("gfx942", "scratch_store_dword off, v2, s9 offset:4", "scratch_load_dword v3, v5, off"),
    ):
        body = f"""
        s_mov_b32 s9, 4
        v_mov_b32_e32 v5, 8
        {store}
        v_mov_b32_e32 v3, 0
        {load}
        s_waitcnt vmcnt(0)
        """
        done = execute(
            f"{LOAD}\n{body}\n{STORE}", DATA, processor=processor, threads=128, scratch=16
        )
        assert done.words(128).tolist() == DATA[:128].tolist()
        assert not done.run.findings


def test_generic_addresses_reach_lds_scratch_and_memory() -> None:
    body = """
    s_mov_b64 s[10:11], src_shared_base
    s_mov_b64 s[12:13], src_private_base
    v_mov_b32_e32 v5, s11
    v_mov_b32_e32 v4, v1
    v_and_b32_e32 v6, 1, v0
    v_cmp_eq_u32_e32 vcc, 1, v6
    v_mov_b32_e32 v7, s13
    v_cndmask_b32_e32 v5, v5, v7, vcc
    v_mov_b32_e32 v7, 4
    v_cndmask_b32_e32 v4, v4, v7, vcc
    flat_store_dword v[4:5], v2
    flat_load_dword v3, v[4:5]
    s_waitcnt vmcnt(0) lgkmcnt(0)
    """
    done = execute(f"{LOAD}\n{body}\n{STORE}", DATA, lds=256, scratch=8)
    assert done.words(64).tolist() == DATA[:64].tolist()
    assert not done.run.findings


def from_table(*instructions: str) -> tuple[int, ...]:
    """The first words of what lanes load of a table, each from where s[10:11] point to."""
    body = "\n".join((*instructions, "global_load_dword v3, v1, s[10:11]"))
    text = f"{LOAD}\n{body}\n{STORE}"
    lines = [".section\t.rodata.table", "\ntable:", "\n\t.long\t7  ; 0x7", "\n\t.quad\t-2"]
    table = "\t" + "".join(lines) + "\n\t.zero\t4\n\t.short\t9, 10\n"
    memory = Memory()
    memory.map("out", OUT, 1 << 12)
    memory.map("in", IN, 1 << 12)
    program = program_of(listing(text) + table, "k")
    done = run(program, Launch("k", (1, 1, 1), (64, 1, 1), 0, (OUT, IN, 0)), memory)
    assert not done.unknown
    return struct.unpack("<6I", memory.read(OUT, 24))


def test_a_table_of_the_kernels_own_is_read_by_its_name() -> None:
    got = from_table(
        "s_getpc_b64 s[10:11]",
        "s_add_u32 s10, s10, table@rel32@lo+4",
        "s_addc_u32 s11, s11, table@rel32@hi+12",
    )
    assert got == (7, 0xFFFF_FFFE, 0xFFFF_FFFF, 0, 0xA0009, 0)


@pytest.mark.parametrize(
    ("between", "low", "high"),
    [((), 12, 20), (("s_nop 0",), 16, 24), (("s_nop 0", "s_nop 1"), 20, 28)],
)
def test_a_place_in_a_table_is_what_an_addend_has_more_than_its_distance(
    between: tuple[str, ...], low: int, high: int
) -> None:
    """Eight bytes, whatever the compiler puts after the own address."""
    got = from_table(
        "s_getpc_b64 s[10:11]",
        *between,
        f"s_add_u32 s10, s10, table@rel32@lo+{low}",
        f"s_addc_u32 s11, s11, table@rel32@hi+{high}",
    )
    assert got[:3] == (0xFFFF_FFFF, 0, 0xA0009)
