"""A modelled compute unit: kernels made by hand, of which it is known what bounds them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from scheduler import targets
from scheduler.cycles.constants import rates_at
from scheduler.cycles.cuts import LAST_ITERATIONS, MEASURED_ITERATIONS, SETTLING_ITERATIONS
from scheduler.cycles.device import busiest_cycles, left_out_cycles
from scheduler.cycles.report import Pipe, StallReason
from scheduler.isa.rocm.emulator.trace import Access, WaveTrace
from scheduler.targets.cycle_model import End
from scheduler.targets.modelled import TARGETS
from tests.unit.cycles.accesses import access
from tests.unit.cycles.hand import block, looped, run, trace

MATRIX = {
    "gfx90a": ("v_mfma_f32_16x16x16f16 a[{0}:{1}], v[0:1], v[2:3], a[{0}:{1}]", 4),
    "gfx942": ("v_mfma_f32_16x16x16_f16 a[{0}:{1}], v[0:1], v[2:3], a[{0}:{1}]", 4),
    "gfx950": ("v_mfma_f32_16x16x32_f16 a[{0}:{1}], v[0:3], v[4:7], a[{0}:{1}]", 4),
    "gfx1100": ("v_wmma_f32_16x16x16_f16 v[{0}:{1}], v[200:207], v[208:215], v[{0}:{1}]", 8),
    "gfx1201": ("v_wmma_f32_16x16x16_f16 v[{0}:{1}], v[200:203], v[204:207], v[{0}:{1}]", 8),
}
LOADS = """
global_load_dwordx4 v[4:7], v0, s[0:1]
s_waitcnt vmcnt(0)
global_store_dwordx4 v0, v[4:7], s[2:3]
s_endpgm
"""


def matrix_loop(target: str, chains: int) -> str:
    line, width = MATRIX[target]
    products = [line.format(width * n, width * n + width - 1) for n in range(chains)]
    return "\n".join(
        [
            "s_mov_b32 s0, 0",
            ".LBB0_1:",
            *products,
            "s_add_i32 s0, s0, -1",
            "s_cmp_lg_u32 s0, 0",
            "s_cbranch_scc1 .LBB0_1",
            "s_endpgm",
        ]
    )


@pytest.mark.parametrize("target", TARGETS)
def test_a_loop_of_matrix_instructions_keeps_the_matrix_pipes_busy(target: str) -> None:
    """Two waves a SIMD: at the published rate, but for its start."""
    rates = rates_at(targets.find(target), End.MID)
    lanes, simds = rates.wave, rates.simds
    chains, times = 8, 200
    waves = [trace(looped(1, chains + 3, 1, times), wave=n, lanes=lanes) for n in range(2 * simds)]
    text = matrix_loop(target, chains)
    outcome = run(text, waves, target=target)
    whole = outcome.cycles + left_out_cycles(block(text, waves, target), outcome)
    busy = outcome.totals.pipes[Pipe.MATRIX] / simds
    assert outcome.instructions < 2 * simds * (chains + 3) * (
        SETTLING_ITERATIONS + MEASURED_ITERATIONS + LAST_ITERATIONS + 1
    )
    assert 0.97 < busy / max(whole, busiest_cycles(outcome, rates)) <= 1.0


def test_one_chain_alone_waits_for_its_own_results_only_where_others_read_them() -> None:
    text = matrix_loop("gfx942", 1)
    alone = run(text, [trace(looped(1, 4, 1, 40))])
    assert sum(alone.totals.stalls[StallReason.MATRIX]) == 0
    reads = text.replace(
        "s_add_i32", "v_add_f32_e32 v9, v9, v10\nv_accvgpr_read_b32 v8, a0\ns_add_i32"
    )
    waiting = run(reads, [trace(looped(1, 6, 1, 40))])
    assert sum(waiting.totals.stalls[StallReason.MATRIX]) > 0


def copies(count: int, first: int = 0) -> list[WaveTrace]:
    """Waves that copy 16 bytes a lane."""
    return [
        trace(
            range(4),
            {
                0: access([first + 1024 * n + 16 * lane for lane in range(64)], 16),
                2: access([(1 << 30) + first + 1024 * n + 16 * lane for lane in range(64)], 16),
            },
            wave=n,
        )
        for n in range(count)
    ]


def test_a_copy_takes_what_the_memory_takes() -> None:
    outcome = run(LOADS, copies(16), blocks=24, resident=2, memory=6.0)
    moved = 24 * 16 * 2 * 1024
    served = outcome.totals.served["memory"]
    assert served == pytest.approx(moved / 6.0)
    assert served * 0.95 < outcome.cycles < served * 1.05
    waits = {reason: sum(values) for reason, values in outcome.totals.stalls.items()}
    assert max(waits, key=lambda reason: waits[reason]) is StallReason.GLOBAL


def lds_loop(conflicts: int) -> tuple[str, list[WaveTrace]]:
    text = """
    ds_read_b32 v1, v0
    ds_read_b32 v2, v0
    ds_read_b32 v3, v0
    ds_read_b32 v4, v0
    s_waitcnt lgkmcnt(0)
    s_endpgm
    """
    one = access([4 * conflicts * lane for lane in range(64)], 4)
    return text, [trace(range(6), dict.fromkeys(range(4), one), wave=n) for n in range(8)]


def test_more_conflicts_are_never_faster() -> None:
    cycles = [run(*lds_loop(conflicts)).cycles for conflicts in (1, 2, 4, 8, 16, 32)]
    assert cycles == sorted(cycles)
    assert cycles[-1] - cycles[0] == pytest.approx(8 * 4 * (64 - 2), rel=0.1)


def test_the_slow_end_is_never_faster() -> None:
    kernels: Sequence[tuple[str, list[WaveTrace]]] = [
        lds_loop(4),
        (LOADS, copies(8)),
        (matrix_loop("gfx942", 4), [trace(looped(1, 7, 1, 9))]),
    ]
    for text, traces in kernels:
        fast, mid, slow = (run(text, traces, end=end).cycles for end in End)
        assert fast <= mid <= slow


def test_less_bandwidth_and_more_blocks_are_never_faster() -> None:
    cycles = [
        run(LOADS, copies(4), blocks=8, resident=2, memory=each).cycles for each in (16, 8, 4)
    ]
    assert cycles == sorted(cycles)
    cycles = [run(LOADS, copies(4), blocks=each, resident=2).cycles for each in (1, 2, 4, 8)]
    assert cycles == sorted(cycles)


def test_it_is_the_same_each_time() -> None:
    assert run(LOADS, copies(8), blocks=3) == run(LOADS, copies(8), blocks=3)


def test_waves_meet_at_barriers() -> None:
    """The one that sleeps keeps the others waiting, and they know for what."""
    text = "s_sleep 10\ns_barrier\ns_endpgm"
    late, early = trace([0, 1, 2], wave=0), [trace([1, 2], wave=n) for n in range(1, 4)]
    outcome = run(text, [late, *early])
    assert outcome.cycles > 640
    waited = outcome.totals.stalls[StallReason.BARRIER][1]
    assert waited == pytest.approx(3 * 640, rel=0.2)
    assert {wave.ended for wave in outcome.waves} <= {
        outcome.cycles - each for each in (0.0, 1.0, 2.0, 3.0)
    }


def test_counters_let_through_as_many_as_they_say() -> None:
    """vmcnt(1) waits for the first of two loads, vmcnt(0) for both: the second one is far more to
    fetch."""
    few = access([16 * lane for lane in range(64)], 16)
    many = access([4096 * lane for lane in range(64)], 16)
    text = """
    global_load_dwordx4 v[4:7], v0, s[0:1]
    global_load_dwordx4 v[8:11], v0, s[0:1]
    s_waitcnt vmcnt({})
    s_endpgm
    """
    cycles = [
        run(text.format(left), [trace(range(4), {0: few, 1: many})], memory=2.0).cycles
        for left in (2, 1, 0)
    ]
    assert cycles[0] < cycles[1] < cycles[2]
    assert cycles[2] - cycles[1] > 64 * 128 / 2.0 * 0.9


def test_lines_that_l1_has_are_not_fetched_again() -> None:
    same: dict[int, Access] = {0: access([16 * lane for lane in range(64)], 16)}
    twice = LOADS.replace(
        "s_waitcnt", "s_waitcnt vmcnt(0)\nglobal_load_dwordx4 v[8:11], v0, s[0:1]\ns_waitcnt"
    )
    outcome = run(twice, [trace(range(6), {0: same[0], 2: same[0]})])
    assert outcome.totals.l1_hits == outcome.totals.l1_lines / 2 == 8


def test_code_beyond_the_instruction_cache_is_fetched_again_each_time() -> None:
    body = "\n".join(["v_add_f32_e32 v0, v0, v1"] * 512)
    text = f"s_mov_b32 s0, 0\n.LBB0_1:\n{body}\ns_cbranch_scc1 .LBB0_1\ns_endpgm"
    traces = [trace(looped(1, 513, 1, 4))]
    large = run(text, traces, code_lines=512)
    small = run(text, traces, code_lines=8)
    assert sum(small.totals.stalls[StallReason.FETCH]) > 3 * sum(
        large.totals.stalls[StallReason.FETCH]
    )


def test_priority_goes_before_age() -> None:
    text = "s_setprio 3\n" + "v_exp_f32_e32 v0, v1\n" * 50 + "s_endpgm"
    plain = trace(list(range(1, 52)), wave=0)
    preferred = trace(list(range(52)), wave=4)
    others = [trace([51], wave=n) for n in range(1, 4)]  # on the other SIMDs
    outcome = run(text, [plain, *others, preferred])
    ended = {wave.wave: wave.ended for wave in outcome.waves}
    assert ended[4] < ended[0]


def test_the_timeline_is_of_the_first_waves() -> None:
    outcome = run(LOADS, copies(4), blocks=3, timeline=2)
    lanes = [wave for wave in outcome.waves if wave.spans]
    assert [(lane.block, lane.wave) for lane in lanes] == [(0, 0), (0, 1)]
    for lane in lanes:
        assert any(span.reason is StallReason.GLOBAL for span in lane.spans)
        assert all(span.start <= span.end for span in lane.spans)


@pytest.mark.parametrize("end", End)
def test_a_block_begins_some_time_after_the_one_whose_place_it_takes(end: End) -> None:
    start = rates_at(targets.find("gfx942"), end).block_start
    text = "s_sleep 10\ns_endpgm"
    outcome = run(text, [trace([0, 1])], blocks=3, resident=1, end=end)
    begun = [wave.started for wave in outcome.waves]
    assert start > 0
    assert begun == [0.0, *(ended + start for ended in outcome.ends[:-1])]
    beside = run(text, [trace([0, 1])], blocks=3, resident=3, end=end)
    assert [wave.started for wave in beside.waves] == [0.0] * 3
