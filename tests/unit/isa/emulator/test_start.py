"""How waves begin: arguments, threads, blocks, on each generation."""

from __future__ import annotations

import pytest

from scheduler.errors import UserError
from scheduler.isa.rocm.emulator.launch import Launch
from scheduler.isa.rocm.emulator.memory import Memory
from scheduler.isa.rocm.emulator.program import program_of
from scheduler.isa.rocm.emulator.run import run
from tests.unit.isa.emulator.kernels import IN, LOAD, OUT, STORE, execute, listing, program


def test_blocks_have_their_numbers_and_arguments_their_values() -> None:
    body = f"""{LOAD}
    s_load_dword s9, s[0:1], 0x14
    s_lshl_b32 s10, s2, 8
    s_waitcnt lgkmcnt(0)
    v_add_u32_e32 v1, s10, v1
    v_mov_b32_e32 v3, s2
    v_add_u32_e32 v3, s8, v3
    s_mulk_i32 s9, 100
    v_add_u32_e32 v3, s9, v3
    {STORE}
    """
    done = execute(body, grid=3, blocks=(2, 0), scalar=7)
    assert set(done.words(64).tolist()) == {307}
    assert set(done.words(64, 512).tolist()) == {309}
    assert not done.words(64, 256).any()
    assert [trace.block for trace in done.run.traces] == [2, 0]


def test_threads_are_packed_into_one_register() -> None:
    body = f"""{LOAD}
    v_mov_b32_e32 v3, v0
    v_and_b32_e32 v1, 0x3ff, v0
    v_bfe_u32 v5, v0, 10, 10
    v_lshl_add_u32 v1, v5, 3, v1
    v_bfe_u32 v5, v0, 20, 10
    v_lshl_add_u32 v1, v5, 5, v1
    v_lshlrev_b32_e32 v1, 2, v1
    {STORE}"""
    found = execute(body, block=(8, 4, 2), ids=2).words(64).tolist()
    assert found == [x | y << 10 | z << 20 for z in range(2) for y in range(4) for x in range(8)]


@pytest.mark.parametrize("processor", ["gfx1100", "gfx1201"])
def test_rdna_has_waves_of_32_and_gfx12_its_block_in_another_register(processor: str) -> None:
    new = processor == "gfx1201"
    body = f"""
    s_load_b128 s[4:7], s[0:1], 0x0
    {"s_wait_kmcnt 0x0" if new else "s_waitcnt lgkmcnt(0)"}
    v_lshlrev_b32_e32 v1, 2, v0
    v_mov_b32_e32 v3, {"ttmp9" if new else "s2"}
    global_store_b32 v1, v3, s[4:5]
    """
    done = execute(body, processor=processor, threads=80, grid=9, blocks=(6,))
    assert done.words(96).tolist() == [6] * 80 + [0] * 16
    assert [trace.active[0] for trace in done.run.traces] == [32, 32, 16]


def test_a_launch_that_does_not_fit_is_one_line() -> None:
    kernel = program("s_nop 0")
    good = Launch("k", (1, 1, 1), (64, 1, 1), 0, (OUT, IN, 0))
    for launch, blocks, words in (
        (Launch("k", (1, 1, 1), (64, 1, 1), 0, (OUT,)), (0,), "3 arguments"),
        (
            Launch("k", (1, 1, 1), (4096, 1, 1), 0, good.arguments),
            (0,),
            r"invalid block \(4096, 1, 1\)",
        ),
        (Launch("k", (1, 0, 1), (64, 1, 1), 0, good.arguments), (0,), r"or grid \(1, 0, 1\)"),
        (Launch("k", (1, 1, 1), (64, 1, 1), 1 << 30, good.arguments), (0,), "LDS"),
        (good, (1,), "blocks to run"),
        (good, (), "blocks to run"),
    ):
        with pytest.raises(UserError, match=words):
            run(kernel, launch, Memory(), blocks)
    with pytest.raises(UserError, match="no function 'other'"):
        program_of(listing("s_nop 0"), "other")


def test_memory_is_as_before_but_for_the_stores() -> None:
    memory = Memory()
    memory.map("out", OUT, 4096)
    kernel = program("s_nop 0")
    run(kernel, Launch("k", (1, 1, 1), (64, 1, 1), 0, (OUT, IN, 0)), memory)
    assert [region.name for region in memory.regions] == ["out"]
