"""What differs between two sides is said in the field's terms, and only where the level moved."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.track.differences import (
    Aspect,
    Difference,
    differences,
    environment_differences,
)
from scheduler.track.sides import CodeObject, Environment, Point, Side
from tests.support.tracked import (
    AMD,
    NVIDIA,
    at,
    chosen_anew,
    edited,
    elsewhere,
    point,
    recompiled,
    repeated,
    side,
)


def sentences(before: Point, after: Point) -> list[str]:
    return [one.sentence for one in differences(side(before), side(after))]


def of(aspect: Aspect, found: tuple[Difference, ...]) -> list[Difference]:
    return [one for one in found if one.aspect is aspect]


def test_equal_points_do_not_differ() -> None:
    assert differences(side(point()), side(at(point(), 130.0))) == ()


def test_registers_over_a_boundary_of_amds() -> None:
    after = edited(
        point(), 120.0, vgpr=72, occupancy_waves_per_simd=7, limiter="VGPR", scratch_bytes=16
    )
    assert sentences(point(), after) == [
        "revision r1 → r2",
        "source source 1 → source 2",
        "code object code 1 → code 2",
        "occupancy 8 → 7 waves per SIMD, limited by VGPR now",
        "VGPRs 64 → 72, crossing the limit of 8 → 7 waves per SIMD",
        "Scratch 0 → 16 bytes",
    ]


def test_registers_over_a_boundary_of_nvidias() -> None:
    before = point(target="sm_90")
    after = edited(
        before,
        120.0,
        registers=72,
        occupancy_blocks_per_sm=3,
        occupancy_warps_per_sm=24,
        spill_store_bytes=128,
        spill_load_bytes=64,
    )
    assert sentences(before, after)[2:] == [
        "cubin code 1 → code 2",
        "occupancy 32 → 24 warps per SM, limited by registers now",
        "registers 64 → 72, crossing the limit of 32 → 24 warps per SM",
        "Blocks 4 → 3 per SM",
        "Spills 0, 0 → 128, 64 B stored, loaded",
    ]


def test_registers_that_cross_no_boundary() -> None:
    assert "VGPRs 60 → 64" in sentences(
        edited(point(), 100.0, 1, vgpr=60), edited(point(), 110.0, 2)
    )


def test_a_boundary_that_lds_hides() -> None:
    """The registers would allow fewer waves, and LDS allows fewer still on both sides."""
    before = edited(point(), 100.0, 1, occupancy_waves_per_simd=4, limiter="LDS")
    after = edited(point(), 110.0, 2, vgpr=72, occupancy_waves_per_simd=4, limiter="LDS")
    said = "VGPRs 64 → 72, crossing the limit of 8 → 7 waves per SIMD allowed by registers alone"
    assert said in sentences(before, after)


def test_a_target_that_is_not_known_here_has_plain_figures() -> None:
    before = point(target="gfx4000")
    assert "vgpr 64 → 72" in sentences(before, edited(before, 120.0, vgpr=72))


def test_the_mix_of_the_inner_loop_in_the_makers_words() -> None:
    before, after = point(), edited(point(), 120.0)
    loops = ({"vector": 20, "lds": 4}, {"vector": 24, "lds": 4, "scratch": 2})
    before = replace(before, code=replace(before.code, inner_loop=loops[0]))
    after = replace(after, code=replace(after.code, inner_loop=loops[1]))
    found = of(Aspect.INNER_LOOP, differences(side(before), side(after)))
    assert [one.sentence for one in found] == [
        "inner loop instructions: vector 20 → 24, scratch 0 → 2"
    ]


def test_clocks_say_what_held_them_down() -> None:
    slow = replace(point(120.0), readings={"sm_clock_mhz": 1755.0, "throttled_power": 0.4})
    assert sentences(point(), slow) == [
        "SM clock 1,980 → 1,755 MHz, throttled by power in 40% of samples",
        "throttled by power in 0% → 40% of samples",
    ]
    assert sentences(slow, point()) == [
        "SM clock 1,755 → 1,980 MHz, throttled by power in 40% of samples before",
        "throttled by power in 40% → 0% of samples",
    ]


def test_a_step_of_the_clock_is_no_difference() -> None:
    assert not sentences(point(), replace(point(120.0), readings={"sm_clock_mhz": 1965.0}))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"driver": "580.159"}, "driver 580.95 → 580.159"),
        ({"runtime": "ROCm 7.2"}, "runtime ROCm 7.1 → ROCm 7.2"),
        ({"device": "AMD Instinct MI325X"}, "device AMD Instinct MI300X → AMD Instinct MI325X"),
        ({"unit": "unit 2"}, "device serial number unit 1 → unit 2"),
        ({"host": "host 2"}, "host host 1 → host 2"),
        ({"settings": {"power limit": "500 W"}}, "power limit 700 W → 500 W"),
    ],
)
def test_each_attribute_of_the_environment(changes: dict[str, str], said: str) -> None:
    after = elsewhere(at(point(), 120.0), **changes)
    assert sentences(point(), after) == [said]
    fast = environment_differences(point(), after)
    assert fast == differences(side(point()), side(after)), "the fast way says the same"


def test_what_is_not_known_is_no_difference() -> None:
    unknown = replace(point(), environment=Environment(), code=CodeObject(), source_digest="")
    assert not sentences(unknown, point(120.0))
    assert not sentences(point(), replace(unknown, value=120.0))


def test_who_must_not_compare_asks_for_what_one_alone_knows() -> None:
    unknown = replace(point(), environment=replace(point().environment, driver="", settings={}))
    assert environment_differences(unknown, point()) == ()
    found = environment_differences(unknown, point(), unknown=True)
    assert [(one.name or one.aspect, one.before, one.after) for one in found] == [
        ("driver", "", "580.95"),
        ("power limit", "not set", "700 W"),
    ]
    assert environment_differences(unknown, unknown, unknown=True) == ()


def test_the_compilers_version_and_flags() -> None:
    assert "rocm 7.1.0 → 7.2.0" in sentences(point(), recompiled(point(), 120.0))
    before = replace(point(), compiler=replace(point().compiler, version="rocm clang 22"))
    after = replace(point(120.0), compiler=replace(point().compiler, version="rocm clang 23"))
    assert "rocm clang 22 → clang 23" in sentences(before, after)
    flags = replace(point().compiler, flags=("-O3", "-ffast-math"))
    after = replace(point(120.0), compiler=flags)
    assert sentences(point(), after) == ["compiler flags -O3 → -O3 -ffast-math"]


def test_a_configuration_is_told_by_its_changed_parameters() -> None:
    assert "configuration BLOCK_M 64 → 128" in sentences(point(), chosen_anew(point(), 120.0))
    before = replace(point(), configuration="BLOCK_K=64, BLOCK_M=64, SPLIT_K=1")
    after = replace(point(120.0), configuration="ASYNC=1, BLOCK_K=64, BLOCK_M=128")
    assert "configuration ASYNC not set → 1, BLOCK_M 64 → 128, SPLIT_K 1 → not set" in sentences(
        before, after
    )


def test_equal_instructions_are_the_same_code_whatever_the_file_is_called() -> None:
    before = replace(point(), code=CodeObject("file 1", "same", {"kernel": AMD}))
    after = replace(point(120.0), code=CodeObject("file 2", "same", {"kernel": AMD}))
    assert not of(Aspect.CODE, differences(side(before), side(after)))


def test_a_change_next_to_the_step_is_shown_and_is_not_here() -> None:
    """The commit came three points before the level moved."""
    old = repeated(point(), 8).points
    new = tuple(edited(one, one.value) for one in repeated(point(), 3, seed=1).points)
    before, after = Side((*new, *old)), repeated(edited(point(), 120.0), 8, seed=2)
    (code,) = of(Aspect.CODE, differences(before, after))
    assert not code.here
    assert code.sentence.endswith("(3 points before the change, not at the change)")


def test_a_place_that_the_noise_leaves_open_counts() -> None:
    """With as much noise as the step is high, one point more or less is not told apart."""
    old, new = repeated(point(), 8, noise=0.05), repeated(edited(point(), 108.0), 7, noise=0.05)
    after = Side((at(point(), 104.0), *new.points))
    (code,) = of(Aspect.CODE, differences(old, after))
    assert code.here


def test_hosts_that_take_turns_do_not_differ() -> None:
    other = elsewhere(point(), host="host 2")
    before = Side((point(), other) * 4)
    after = Side((at(point(), 120.0), at(other, 120.0)) * 4)
    assert not of(Aspect.HOST, differences(before, after))


def test_nvidias_and_amds_figures_are_of_their_recipes() -> None:
    """What the tests change by hand is what the recipes give."""
    from scheduler.build.cuda.resources import Resources as Cuda
    from scheduler.build.rocm.metadata import Resources as Amd

    assert (Amd(**AMD).vgpr, Cuda(**NVIDIA).registers) == (64, 64)
