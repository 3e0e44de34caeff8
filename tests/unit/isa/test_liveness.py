"""Live registers: what a slow search over all paths finds, and never more than are allocated."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.build.rocm.metadata import parse_kernels
from scheduler.isa.listing import Function
from scheduler.isa.rocm.liveness import live_registers
from scheduler.isa.rocm.reader import GPU
from tests.unit.build.sources import ADD, GEMM
from tests.unit.isa.conftest import GPUS, ListingOf


def function_of(*lines: str) -> Function:
    text = "\t.type f,@function\nf:\n" + "".join(
        f"{line}\n" if line.endswith(":") else f"\t{line}\n" for line in lines
    )
    (function,) = GPU.parse(text + ".Lfunc_end0:\n").functions
    return function


@pytest.mark.parametrize("name", GPUS)
@pytest.mark.parametrize(("source", "symbol"), [(ADD, "add_one"), (GEMM, "product")])
def test_never_more_than_allocated_and_most_of_it_is_used(
    name: str, source: str, symbol: str, listing_of: ListingOf
) -> None:
    text = listing_of(source, symbol, name)
    (function,) = GPU.parse(text).functions
    live = live_registers(function)
    allocated = parse_kernels(text)[function.name]
    assert len(live.counts) == len(function.instructions)
    assert live.peak <= allocated.vgpr_count
    assert live.peak >= 0.6 * allocated.vgpr_count
    assert max(live.agpr) <= allocated.agpr_count
    assert live.counts[-1] == 0  # nothing is needed after the end
    assert all(live.counts[index] == live.peak for index in live.peaks)


def test_a_straight_line() -> None:
    live = live_registers(
        function_of(
            "global_load_dwordx4 v[4:7], v[0:1], off",  # v0 v1, gives v4..v7
            "v_add_f32_e32 v4, v4, v5",
            "v_fmac_f32_e32 v4, v6, v7",
            "v_accvgpr_write_b32 a3, v4",
            "v_mfma_f32_4x4x1_16b_f32 a[0:3], v4, v4, a[0:3]",
            "global_store_dwordx4 v[0:1], a[0:3], off",
            "s_endpgm",
        )
    )
    assert live.counts == (2 + 4 + 3, 2 + 4 + 3, 2 + 3 + 3, 2 + 1 + 4, 2 + 1 + 4, 2 + 4, 0)
    assert live.agpr == (3, 3, 3, 4, 4, 4, 0)
    assert live.peak == 9
    assert live.peaks == (0, 1)


def test_values_that_go_round_a_loop_stay_live_in_it() -> None:
    live = live_registers(
        function_of(
            "v_mov_b32_e32 v1, 0",
            ".LBB0_1:",
            "v_mov_b32_e32 v2, 1.0",
            "v_add_f32_e32 v1, v1, v2",
            "s_cbranch_scc1 .LBB0_1",
            "global_store_dword v[3:4], v1, off",
            "s_endpgm",
        )
    )
    assert live.counts == (3, 4, 4, 3, 3, 0)


@pytest.mark.parametrize(
    ("instruction", "live"),
    [
        ("v_mov_b32_e32 v5, v1", {1}),  # v5 is overwritten
        ("v_mov_b16_e32 v5.l, v1.l", {1, 5}),  # half of it is kept
        ("v_fmac_f32_e32 v5, v1, v2", {1, 2, 5}),
        ("v_dual_fmac_f32 v5, v1, v2 :: v_dual_mov_b32 v6, v3", {1, 2, 3, 5}),
        ("v_swap_b32 v5, v1", {1, 5}),
        ("v_cmpx_gt_u32_e32 v1, v2", {1, 2, 5}),
        ("v_cmp_gt_i32_e32 vcc, s3, v1", {1, 5}),
        ("v_mov_b32_dpp v5, v1 row_shr:1 row_mask:0xf bank_mask:0xf", {1, 5}),
        ("ds_read_u16_d16_hi v5, v1", {1, 5}),
        ("ds_read_b32 v5, v1", {1}),
        ("ds_write_b32 v1, v2", {1, 2, 5}),
        ("ds_add_rtn_u32 v5, v1, v2", {1, 2}),
        ("ds_add_u32 v1, v2", {1, 2, 5}),
        ("ds_bpermute_b32 v5, v1, v2", {1, 2}),
        ("global_atomic_add_f32 v1, v2, s[0:1]", {1, 2, 5}),
        ("global_atomic_add v5, v1, v2, s[0:1] glc", {1, 2}),
        ("global_atomic_add_u32 v5, v1, v2, s[0:1] th:TH_ATOMIC_RETURN", {1, 2}),
        ("global_load_lds_dword v[1:2], off", {1, 2, 5}),
        ("buffer_load_dword v5, v1, s[0:3], 0 offen", {1}),
        ("buffer_load_dword v1, s[0:3], 0 offen lds", {1, 5}),
        ("scratch_store_dword off, v1, s32", {1, 5}),
        ("v_readfirstlane_b32 s5, v1", {1, 5}),
    ],
)
def test_what_is_read_before_v5_is_stored(instruction: str, live: set[int]) -> None:
    """The registers live before the instruction, when only v5 is needed after it."""
    function = function_of("s_nop 0", instruction, "global_store_dword v9, v5, s[0:1]", "s_endpgm")
    assert live_registers(function).counts[0] == len(live | {9})


steps = st.lists(
    st.one_of(
        st.tuples(st.just("use"), st.integers(0, 5), st.integers(0, 5)),
        st.tuples(st.just("define"), st.integers(0, 5), st.integers(0, 5)),
        st.tuples(st.just("branch"), st.integers(0, 11), st.booleans()),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=150)
@given(steps)
def test_as_a_search_along_every_path_finds(program: list[tuple[str, int, int]]) -> None:
    lines: list[str] = []
    reads: list[set[int]] = []
    writes: list[set[int]] = []
    follow: list[list[int]] = []
    for index, (what, one, other) in enumerate(program):
        goal = one % len(program)
        lines.append(f".LBB0_{index}:")
        if what == "branch":
            lines.append(f"{'s_cbranch_vccz' if other else 's_branch'} .LBB0_{goal}")
            reads.append(set())
            writes.append(set())
            follow.append([goal, index + 1] if other else [goal])
            continue
        if what == "use":
            lines.append(f"global_store_dword v{one}, v{other}, s[0:1]")
        else:
            lines.append(f"v_mov_b32_e32 v{one}, v{other}")
        reads.append({one, other} if what == "use" else {other})
        writes.append(set() if what == "use" else {one})
        follow.append([index + 1])
    function = function_of(*lines, "s_endpgm")

    def needed(index: int, register: int) -> bool:
        """Whether some path from before the instruction reads the register before writing it."""
        seen, stack = set(), [index]
        while stack:
            at = stack.pop()
            if at in seen or at >= len(program):
                continue
            seen.add(at)
            if register in reads[at]:
                return True
            if register not in writes[at]:
                stack += follow[at]
        return False

    reachable, stack = set(), [0]
    while stack:
        at = stack.pop()
        if at not in reachable and at < len(program):
            reachable.add(at)
            stack += follow[at]
    live = live_registers(function)
    for index in reachable:
        after = {r for r in range(6) for each in follow[index] if needed(each, r)}
        before = {r for r in range(6) if needed(index, r)}
        assert live.counts[index] == len(before | after | writes[index]), index
