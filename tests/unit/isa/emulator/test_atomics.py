"""Atomic operations: lanes one after another, whatever their addresses."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.isa.emulator.kernels import LOAD, STORE, Done, execute

DATA = np.random.default_rng(5).integers(0, 1 << 32, 64, dtype=np.uint32)


def in_order(kind: str, old: int, value: int) -> int:
    signed = [each - ((each >> 31) << 32) for each in (old, value)]
    return {
        "add": lambda: old + value,
        "sub": lambda: old - value,
        "smin": lambda: min(signed),
        "smax": lambda: max(signed),
        "umin": lambda: min(old, value),
        "umax": lambda: max(old, value),
        "and": lambda: old & value,
        "or": lambda: old | value,
        "xor": lambda: old ^ value,
        "swap": lambda: value,
        "inc": lambda: 0 if old >= value else old + 1,
        "dec": lambda: value if old == 0 or old > value else old - 1,
    }[kind]() & 0xFFFF_FFFF


KINDS = ("add", "sub", "smin", "smax", "umin", "umax", "and", "or", "xor", "swap", "inc", "dec")
LDS = {"smin": "min_rtn_i32", "smax": "max_rtn_i32", "umin": "min_rtn_u32", "umax": "max_rtn_u32"}
LDS |= {"swap": "wrxchg_rtn_b32", "and": "and_rtn_b32", "or": "or_rtn_b32", "xor": "xor_rtn_b32"}


def places(kind: str) -> tuple[list[int], list[int]]:
    """The four places that 64 lanes share, and what each lane gets back."""
    memory, back = [0x8000_0001] * 4, []
    for lane, value in enumerate(DATA.tolist()):
        back.append(memory[lane % 4])
        memory[lane % 4] = in_order(kind, memory[lane % 4], value)
    return memory, back


@pytest.mark.parametrize("kind", KINDS)
def test_lanes_that_share_a_place_come_one_after_another(kind: str) -> None:
    body = f"""{LOAD}
    v_and_b32_e32 v4, 3, v0
    v_lshlrev_b32_e32 v4, 2, v4
    v_mov_b32_e32 v5, 0x80000001
    global_store_dword v4, v5, s[4:5] offset:1024
    global_atomic_{kind} v3, v4, v2, s[4:5] offset:1024 sc0
    s_waitcnt vmcnt(0)
    {STORE}
    """
    done = execute(body, DATA)
    memory, back = places(kind)
    assert done.words(4, 1024).tolist() == memory
    assert done.words(64).tolist() == back


@pytest.mark.parametrize("kind", KINDS)
def test_likewise_in_lds(kind: str) -> None:
    name = LDS.get(kind, f"{kind}_rtn_u32")
    body = f"""{LOAD}
    v_and_b32_e32 v4, 3, v0
    v_lshlrev_b32_e32 v4, 2, v4
    v_mov_b32_e32 v5, 0x80000001
    ds_write_b32 v4, v5 offset:16
    ds_{name} v3, v4, v2 offset:16
    ds_read_b32 v6, v4 offset:16
    s_waitcnt lgkmcnt(0)
    global_store_dword v4, v6, s[4:5] offset:1024
    {STORE}
    """
    done = execute(body, DATA, lds=64)
    memory, back = places(kind)
    assert done.words(4, 1024).tolist() == memory
    assert done.words(64).tolist() == back


def test_without_a_result_nothing_comes_back() -> None:
    add = "v_mov_b32_e32 v3, 7\nv_mov_b32_e32 v4, 0\nglobal_atomic_add v4, v3, s[6:7]"
    body = f"{LOAD}\n{add}\n{STORE}"
    assert set(execute(body, DATA).words(64).tolist()) == {7}


def test_a_lane_compares_and_swaps() -> None:
    body = f"""{LOAD}
    v_mov_b32_e32 v4, v0
    v_add_u32_e32 v4, 1, v4
    v_mov_b32_e32 v5, v0
    v_mov_b32_e32 v6, 0
    global_atomic_cmpswap v3, v6, v[4:5], s[4:5] offset:1024 sc0
    s_waitcnt vmcnt(0)
    {STORE}
    """
    done = execute(body)
    assert done.words(1, 1024).tolist() == [64]
    assert done.words(64).tolist() == list(range(64))
    lds = f"""{LOAD}
    v_add_u32_e32 v4, 1, v0
    v_mov_b32_e32 v6, 0
    ds_write_b32 v6, v6
    ds_cmpst_rtn_b32 v3, v6, v0, v4
    s_waitcnt lgkmcnt(0)
    {STORE}
    """
    assert execute(lds, lds=16).words(64).tolist() == list(range(64))


def test_sums_of_64_bits_carry() -> None:
    body = f"""{LOAD}
    v_mov_b32_e32 v4, -1
    v_mov_b32_e32 v5, 0
    v_mov_b32_e32 v6, 0
    global_atomic_add_x2 v6, v[4:5], s[4:5] offset:1024
    """
    assert execute(body).words(1, 1024, "<u8").tolist() == [64 * 0xFFFF_FFFF]


def floats(kind: str, values: np.ndarray, memory: str = "global") -> Done:
    body = {
        "global": f"global_atomic_{kind} v4, v2, s[4:5] offset:1024",
        "lds": f"""ds_{kind} v4, v2
        ds_read_b32 v5, v4
        global_store_dword v4, v5, s[4:5] offset:1024""",
    }[memory]
    return execute(f"{LOAD}\nv_mov_b32_e32 v4, 0\n{body}", values, lds=16)


def test_sums_of_floats_are_rounded_lane_after_lane() -> None:
    values = np.random.default_rng(6).standard_normal(64).astype(np.float32)
    total = np.float32(0)
    for value in values:
        total = np.float32(total + value)
    for memory in ("global", "lds"):
        assert floats("add_f32", values, memory).words(1, 1024, "<f4").tolist() == [total]


def test_sums_of_two_halves_in_a_word() -> None:
    values = np.random.default_rng(7).standard_normal(128).astype(np.float16)
    total = np.zeros(2, np.float16)
    for pair in values.reshape(64, 2):
        total = (total + pair).astype(np.float16)
    assert floats("pk_add_f16", values).words(2, 1024, "<f2").tolist() == total.tolist()
    bits = (np.arange(128, dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16)
    found = floats("pk_add_bf16", bits).words(2, 1024, "<u2").astype(np.uint32) << 16
    assert abs(found.view(np.float32) - [4032, 4096]).max() <= 64
