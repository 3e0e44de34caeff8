"""Branches, divergence, barriers and limits: who executes what, and who stops where."""

from __future__ import annotations

import numpy as np

from scheduler.isa.rocm.emulator.limits import Limits
from scheduler.isa.rocm.emulator.trace import WaveTrace
from tests.unit.isa.emulator.kernels import LOAD, STORE, Done, execute, program


def lanes_of(done: Done, wave: int, instruction: int) -> list[int]:
    """How many lanes were on, each time that a wave executed an instruction."""
    trace = done.run.traces[wave]
    return trace.active[trace.executed == instruction].tolist()


IF = f"""{LOAD}
v_mov_b32_e32 v3, 1
v_cmp_gt_u32_e32 vcc, s8, v0
s_and_saveexec_b64 s[10:11], vcc
s_cbranch_execz .LBB0_2
v_add_u32_e32 v3, 41, v3
.LBB0_2:
s_or_b64 exec, exec, s[10:11]
{STORE}
"""


def test_lanes_that_a_condition_leaves_out_keep_their_values() -> None:
    done = execute(IF, scalar=10)
    assert done.words(64).tolist() == [42] * 10 + [1] * 54
    assert lanes_of(done, 0, 10) == [10]  # the addition
    assert lanes_of(done, 0, 12) == [64]  # the store


def test_waves_without_lanes_skip_and_waves_meet_again() -> None:
    done = execute(IF, threads=256, scalar=70)
    assert done.words(256).tolist() == [42] * 70 + [1] * 186
    assert [lanes_of(done, wave, 10) for wave in range(4)] == [[64], [6], [], []]
    assert [lanes_of(done, wave, 12) for wave in range(4)] == [[64]] * 4
    assert len({len(trace.executed) for trace in done.run.traces[:2]}) == 1


LOOP = f"""{LOAD}
v_mov_b32_e32 v3, 0
v_readfirstlane_b32 s9, v0
s_lshr_b32 s9, s9, 6
s_add_i32 s9, s9, 1
.LBB0_1:
v_add_u32_e32 v3, 5, v3
s_add_i32 s9, s9, -1
s_cmp_lg_u32 s9, 0
s_cbranch_scc1 .LBB0_1
{STORE}
"""


def test_waves_go_round_a_loop_as_often_as_each_has_to() -> None:
    done = execute(LOOP, threads=256)
    assert done.words(256).tolist() == [5 * (1 + thread // 64) for thread in range(256)]
    assert [len(lanes_of(done, wave, 10)) for wave in range(4)] == [1, 2, 3, 4]


def test_lanes_leave_a_loop_one_after_another() -> None:
    body = f"""{LOAD}
    v_mov_b32_e32 v3, 0
    v_and_b32_e32 v4, 7, v0
    s_mov_b64 s[10:11], 0
    .LBB0_1:
    v_add_u32_e32 v3, 1, v3
    v_cmp_ge_u32_e32 vcc, v3, v4
    s_or_b64 s[10:11], vcc, s[10:11]
    s_andn2_b64 exec, exec, s[10:11]
    s_cbranch_execnz .LBB0_1
    s_or_b64 exec, exec, s[10:11]
    {STORE}
    """
    done = execute(body)
    assert done.words(64).tolist() == [max(1, thread % 8) for thread in range(64)]
    assert lanes_of(done, 0, 9) == [64, 48, 40, 32, 24, 16, 8]


def test_a_barrier_orders_what_waves_do_in_lds() -> None:
    body = f"""{LOAD}
    v_readfirstlane_b32 s9, v0
    s_cmp_lg_u32 s9, 0
    s_cbranch_scc1 .LBB0_2
    v_mov_b32_e32 v4, 0
    v_mov_b32_e32 v5, 77
    ds_write_b32 v4, v5
    .LBB0_2:
    s_waitcnt lgkmcnt(0)
    s_barrier
    v_mov_b32_e32 v4, 0
    ds_read_b32 v3, v4
    s_waitcnt lgkmcnt(0)
    {STORE}
    """
    done = execute(body, threads=256, grid=2, blocks=(0, 1), lds=64)
    assert done.words(256).tolist() == [77] * 256
    assert [(trace.block, trace.wave) for trace in done.run.traces] == [
        (block, wave) for block in (0, 1) for wave in range(4)
    ]


def test_waves_of_a_block_wait_at_different_barriers_for_one_another() -> None:
    body = f"""{LOAD}
    v_readfirstlane_b32 s9, v0
    v_mov_b32_e32 v4, 0
    s_cmp_lg_u32 s9, 0
    s_cbranch_scc1 .LBB0_2
    v_mov_b32_e32 v5, 9
    ds_write_b32 v4, v5
    s_barrier
    s_branch .LBB0_3
    .LBB0_2:
    s_barrier
    .LBB0_3:
    ds_read_b32 v3, v4
    {STORE}
    """
    assert execute(body, threads=128, lds=64).words(128).tolist() == [9] * 128


def test_a_wave_that_ended_is_not_waited_for() -> None:
    body = f"""{LOAD}
    v_readfirstlane_b32 s9, v0
    s_cmp_lg_u32 s9, 0
    s_cbranch_scc1 .LBB0_2
    s_endpgm
    .LBB0_2:
    s_barrier
    v_mov_b32_e32 v3, 3
    {STORE}
    """
    assert execute(body, threads=128).words(128).tolist() == [0] * 64 + [3] * 64


def test_a_loop_without_end_is_cut_and_says_so() -> None:
    done = execute(".LBB0_0:\ns_branch .LBB0_0", limits=Limits(calls=1000))
    (trace,) = done.run.traces
    assert trace.cut
    assert "more instructions" in done.run.cut
    assert len(trace.executed) <= 1000


def test_memory_that_is_touched_is_bounded() -> None:
    body = f"""{LOAD}
    v_mov_b32_e32 v4, 0
    .LBB0_0:
    v_add_u32_e32 v4, 0x2000, v4
    global_load_dword v5, v4, s[6:7]
    s_branch .LBB0_0
    """
    done = execute(body, limits=Limits(recorded=1000))
    assert "addresses" in done.run.cut
    assert done.run.traces[0].cut
    assert done.run.findings[0].what == "read outside all buffers"


def test_control_flow_that_is_not_known_ends_the_wave() -> None:
    done = execute("s_nop 0\ns_setpc_b64 s[0:1]\ns_nop 0")
    (trace,) = done.run.traces
    assert trace.cut
    assert done.run.unknown == {"s_setpc_b64": 1}
    assert trace.executed.tolist() == [0, 1]


def test_the_last_wave_of_a_block_has_the_lanes_that_are_left() -> None:
    done = execute(f"{LOAD}\nv_mov_b32_e32 v3, 2\n{STORE}", threads=100)
    assert [trace.active.tolist()[0] for trace in done.run.traces] == [64, 36]
    assert done.words(128).tolist() == [2] * 100 + [0] * 28


def test_a_run_is_the_same_each_time() -> None:
    def traces() -> list[tuple[bytes, bytes]]:
        done = execute(LOOP, threads=256)
        return [(each.executed.tobytes(), each.active.tobytes()) for each in done.run.traces]

    assert traces() == traces()


def test_text_that_is_no_program_is_run_as_far_as_it_goes() -> None:
    odd = "v_add_u32_e32 v99999999999, v1\ns_cbranch_scc1 .LBB9_9\nv_mov_b32_e32\n@!\nds_read_b32"
    done = execute(odd, real=False)
    assert done.run.unknown["v_add_u32_e32"] == 1
    assert done.run.traces[0].cut
    assert isinstance(done.run.traces[0], WaveTrace)
    assert program(odd).function.instructions
    assert np.array_equal(done.run.traces[0].executed, [0, 1])
