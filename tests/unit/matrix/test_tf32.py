"""Products of f32 whose operands may be rounded: by which instructions, to what, and where not."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from scheduler import reference
from scheduler.benchmark.case_builder import make_case, node_tolerance
from scheduler.benchmark.gate import compare_output
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.model import Build
from scheduler.build.toolchains import Search, find_target_toolchains, pick_toolchain
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.problem import problem_of
from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.codegen.scheduling import scheduling_for
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.rounding_noise import RoundingNoise
from scheduler.targets import boards, find
from scheduler.tuning.roofline import limit
from scheduler.tuning.work import work_of
from tests.support.tf32 import HIGH, HIGHEST, convolution, linear, rounded, row_major
from tests.unit.matrix.running import Runner

Array = np.ndarray[Any, Any]
SMALL = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "THREADS": 128, "SPLIT_K": 1}


def made(schedule: Schedule, target: str, **config: int) -> TemplateCaller:
    """The default candidate for a target, some of its constants exchanged."""
    (node,) = schedule.nodes
    template = ROCmCPPScheduling(schedule, (find(target),)).template(node)
    chosen = dict(template.default_config()) | config
    rejected = template.reject(chosen)
    assert rejected is None, rejected
    return template.generate(chosen)


def operands(rng: np.random.Generator, m: int, n: int, k: int) -> tuple[Array, Array]:
    """Of more than 11 significant bits."""
    x, w = (rng.standard_normal((rows, k)).astype(np.float32) for rows in (m, n))
    return x.astype(np.float64), w.astype(np.float64)


def assert_rounded(out: Array, x: Array, w: Array) -> None:
    """The products of rounded operands are exact in f32; what is left are the roundings of their
    sums. Those of the operands are much more than that."""
    expected = rounded(x) @ rounded(w).T
    sums = DType.F32.eps * x.shape[1] * (np.abs(x) @ np.abs(w).T)
    assert np.all(np.abs(out - expected) <= 1.01 * sums + 1e-30)
    assert np.median(np.abs(expected - x @ w.T)) > 20 * np.median(np.abs(out - expected))


@pytest.mark.full(but=7)
@pytest.mark.parametrize(
    "config",
    [
        {},
        {**SMALL, "STAGES": 1},
        {**SMALL, "STAGES": 2, "BLOCK_K": 64},
        {**SMALL, "STAGES": 2, "BLOCK_K": 16, "THREADS": 256},
        {**SMALL, "STAGES": 1, "SPLIT_K": 2},
        {**SMALL, "STAGES": 1, "MATRIX_INSTR_NONKDIM": 32, "THREADS": 256},
        {**SMALL, "BLOCK_M": 16, "BLOCK_N": 128, "STAGES": 1},
    ],
    ids=str,
)
def test_operands_are_rounded_and_nothing_else(
    runner: Runner, config: dict[str, int], rng: np.random.Generator
) -> None:
    """Sizes that fill no tile."""
    x, w = operands(rng, 70, 100, 200)
    caller = made(linear(70, 100, 200), "cpu", **config)
    assert caller.kernel.config["ALLOW_TF32"] == 1
    (out,) = runner(caller, {"x": x, "w": w}).values()
    assert_rounded(out, x, w)


def test_to_nearest_and_ties_away_from_zero(runner: Runner) -> None:
    """Sums that f32 holds exactly: what comes out is known to the bit."""
    x, w = np.zeros((16, 32)), np.zeros((16, 32))
    x[0, :4] = 1 + 2.0**-11, -(1 + 2.0**-11), 1 + 2.0**-11 - 2.0**-23, 1 + 3 * 2.0**-11
    w[0, :4] = 1, 2.0**-2, 2.0**-4, 2.0**-6
    x[1, 0], w[1, 1] = 1, 1 + 2.0**-11
    x[2, 0], x[3, 0], x[4, 0] = np.inf, np.nan, -np.inf
    (out,) = runner(made(linear(16, 16, 32), "cpu", GROUP_M=8), {"x": x, "w": w}).values()
    up, up_twice = 1 + 2.0**-10, 1 + 2 * 2.0**-10
    assert out[0, 0] == up - up / 4 + 1 / 16 + up_twice / 64
    assert out[0, 1] == -up * up and out[1, 0] == 1
    assert out[2, 0] == np.inf and np.isnan(out[3, 0]) and out[4, 0] == -np.inf


def test_every_nan_stays_one(runner: Runner) -> None:
    """Also those whose bits carry into the sign, or are cut off."""
    bits = np.array([0x7FC00000, 0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001, 0xFF801000], np.uint32)
    x, w = np.ones((16, 32), np.float32), np.ones((16, 32))
    x[:5, 0] = bits.view(np.float32)
    (out,) = runner(made(linear(16, 16, 32), "cpu", GROUP_M=8), {"x": x, "w": w}).values()
    assert np.isnan(out[:5]).all() and (out[5:] == 32).all()


def test_of_operands_that_lie_the_other_way(runner: Runner, rng: np.random.Generator) -> None:
    x, w = operands(rng, 33, 48, 160)
    caller = made(row_major(33, 48, 160), "cpu")
    assert caller.kernel.config["ALLOW_TF32"] == 1
    (out,) = runner(caller, {"x": x, "w": w.T}).values()
    assert_rounded(out, x, w)


def test_tiles_that_are_copied_while_others_are_multiplied(
    runner: Runner, rng: np.random.Generator
) -> None:
    """NVIDIA's default, whose products round what they take (tests/gpu holds that). Here it is
    rounded before, since nothing does that between the copies and AMD's instruction."""
    x, w = map(rounded, operands(rng, 70, 100, 200))
    caller = made(linear(70, 100, 200), "sm_90", **SMALL)
    assert caller.kernel.config["ASYNC_COPIES"] == caller.kernel.config["ALLOW_TF32"] == 1
    (out,) = runner(caller, {"x": x, "w": w}).values()
    assert np.abs(out - x @ w.T).max() <= DType.F32.eps * 200 * np.abs(x @ w.T).max()


def test_convolutions(runner: Runner, rng: np.random.Generator) -> None:
    """Held to their case as verification does; depthwise ones take no matrix instructions."""
    schedule = convolution(16, 32)
    caller = made(schedule, "cpu")
    assert caller.kernel.config["ALLOW_TF32"] == 1
    x, w = rng.standard_normal((1, 16, 8, 8)), rng.standard_normal((32, 16, 3, 3))
    (out,) = runner(caller, {"x": x, "w": w}).values()
    padded = np.pad(rounded(x.astype(np.float32))[0], ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    expected = np.einsum("cyxij,ocij->oyx", windows, rounded(w.astype(np.float32)))
    assert np.abs(out[0] - expected).max() < 1e-5 * np.abs(expected).max()
    (depthwise,) = convolution(8, 8, groups=8).nodes
    assert not depthwise.members[0].products.allow_tf32  # type: ignore[union-attr]


# What is multiplied by in a listing, with the option.
INSTRUCTIONS = {
    "gfx90a": r"v_mfma_f32_16x16x4_?f32\b",
    "gfx942": r"v_mfma_f32_16x16x8_xf32\b",
    "gfx950": r"v_mfma_f32_16x16x4_f32\b",
    "gfx1100": r"v_(dual_)?fmac_f32",
    "sm_80": r"HMMA\.1688\.F32\.TF32",
    "sm_90": r"HMMA\.1688\.F32\.TF32",
}


@pytest.mark.full(but=["gfx90a"])
@pytest.mark.parametrize("target", INSTRUCTIONS)
def test_the_default_uses_the_targets_instructions(target: str, cache: CodeCache) -> None:
    compiled_for = find(target)
    toolchain = pick_toolchain(
        find_target_toolchains(compiled_for, Search(cache=cache)), compiled_for
    )
    caller = made(linear(2240, 2048, 256), target)
    result = build(caller.kernel.source, caller.name, compiled_for, toolchain, cache)
    assert isinstance(result, Build), f"{result.reason}\n{result.detail}"
    for resources in result.resources.values():
        assert not resources.get("vgpr_spills") and not resources.get("spill_store_bytes")
    assert re.search(INSTRUCTIONS[target], (result.directory / "kernel.s").read_text())


@pytest.mark.full(but=["gfx90a", "gfx1201"])
@pytest.mark.parametrize("target", ["gfx90a", "gfx950", "gfx1030", "gfx1100", "gfx1201"])
def test_where_there_is_no_such_instruction_f32_stays_f32(target: str) -> None:
    """With its own default, and a reason for every other candidate."""
    schedule, plain = linear(512, 512, 512), linear(512, 512, 512, HIGHEST)
    assert made(schedule, target).kernel.source == made(plain, target).kernel.source
    scheduling = scheduling_for(schedule, (find(target),))
    rejected = scheduling.candidates(schedule.nodes[0]).rejected
    reasons = {one.rejected.reason for one in rejected if dict(one.config).get("ALLOW_TF32")}
    own = {reason for reason in reasons if f"for tf32 on {target}: f32 is not rounded" in reason}
    assert own and len(reasons) <= 3, reasons


def test_one_source_for_several_targets_is_rounded_where_all_of_them_can() -> None:
    schedule = linear(512, 512, 512)
    for targets, there in ((("gfx942", "gfx950"), None), (("gfx942", "cpu"), 1)):
        scheduling = ROCmCPPScheduling(schedule, tuple(map(find, targets)))
        config = dict(scheduling.template(schedule.nodes[0]).default_config())
        assert config.get("ALLOW_TF32") == there


# Configurations whose blocks have whole tiles and that round, of a weight that lies along k and of
# one that does not; of the first those with asynchronous copies.
COUNTS = {
    "gfx942": (213, 213, 0),
    "sm_80": (141, 128, 13),
    **dict.fromkeys(("sm_86", "sm_89", "sm_120"), (129, 128, 1)),
    **dict.fromkeys(("sm_90", "sm_100"), (147, 128, 19)),
}


@pytest.mark.parametrize("target", COUNTS)
def test_no_stratum_is_empty(target: str) -> None:
    """As many as there are in f32."""

    def serving(schedule: Schedule) -> list[dict[str, object]]:
        template = ROCmCPPScheduling(schedule, (find(target),)).template(schedule.nodes[0])
        tiles = (one for one in template.configs() if "STREAM_K" not in one)
        return [dict(one) for one in tiles if template.reject(one) is None]

    along, across = serving(linear(296, 264, 256)), serving(row_major(296, 264, 256))
    first, second = ([one for one in each if "ALLOW_TF32" in one] for each in (along, across))
    copied = sum("ASYNC_COPIES" in one for one in first)
    assert (len(first), len(second), copied) == COUNTS[target]
    assert (len(along), len(across)) == (2 * len(first), 2 * len(second))


@pytest.mark.parametrize("target", ["gfx942", "sm_90"])
def test_without_being_asked_for_nothing_is_rounded(target: str) -> None:
    schedule = linear(512, 512, 512, HIGHEST)
    caller = made(schedule, target)
    assert "tf32" not in caller.kernel.source.lower()
    template = ROCmCPPScheduling(schedule, (find(target),)).template(schedule.nodes[0])
    assert not any("ALLOW_TF32" in config for config in template.configs())
    rejected = template.reject({**caller.kernel.config, "ALLOW_TF32": 1})
    assert rejected is not None and "to tf32 is not allowed" in rejected.reason


def test_products_of_other_types_are_as_they_are() -> None:
    for dtype in (DType.F16, DType.BF16, DType.F64):
        (high,), (highest,) = (
            linear(64, 64, 64, precision, dtype).nodes for precision in (HIGH, HIGHEST)
        )
        assert high.members == highest.members


def test_it_is_another_problem() -> None:
    """A name of its own in what is measured; without the option the description is as before."""
    high, highest = linear(64, 64, 64), linear(64, 64, 64, HIGHEST)
    one, other = (problem_of(each.nodes[0], each.lowered) for each in (high, highest))
    assert one.digest != other.digest and "tf32" not in other.text
    assert one.summary == other.summary + " (tf32)"


def test_the_bound_is_that_of_rounded_operands() -> None:
    """Twice 2**-11, for both operands."""
    high, highest = (linear(64, 64, 64, *given).nodes[0] for given in ((), (HIGHEST,)))
    wide, narrow = (node_tolerance(node, DType.F32, {}) for node in (high, highest))
    assert wide.relative - narrow.relative == pytest.approx(2.0**-10)
    assert wide.absolute - narrow.absolute == pytest.approx(2.0**-10)


@pytest.mark.parametrize("shape", [(64, 64, 64), (1, 1, 4096), (256, 8, 1024)], ids=str)
def test_results_pass_their_gate_and_coarser_ones_do_not(
    shape: tuple[int, int, int], rng: np.random.Generator
) -> None:
    """Rounded to bf16 they are off by more than is allowed."""
    schedule = linear(*shape)
    (node,) = schedule.nodes
    case = make_case(node, schedule.lowered, {}, rng)
    x, w = (case.inputs[name].reshape(rows, -1) for name, rows in zip("xw", shape, strict=False))
    ((name, expected),) = case.expected.items()
    tolerance = case.tolerances[name]
    carried = case.carried[name]
    found = compare_output(rounded(x) @ rounded(w).T, expected, tolerance, name, carried)
    assert found.passed, found
    cut = [(each.view(np.uint32) & 0xFFFF0000).view(np.float32).astype(float) for each in (x, w)]
    if shape != (1, 1, 4096):
        assert not compare_output(cut[0] @ cut[1].T, expected, tolerance, name, carried).passed


def test_a_whole_graphs_draws_round_operands_too(rng: np.random.Generator) -> None:
    """Where a bound of the graph's is not enough, what roundings move is."""
    inputs = {"x": rng.standard_normal((8, 64)), "w": rng.standard_normal((8, 64))}
    off = []
    for precision in (HIGH, HIGHEST):
        graph = linear(8, 8, 64, precision).lowered.graph
        drawn = reference.run(graph, inputs, {}, missing={}, roundings=RoundingNoise(rng))
        off.append(np.median(np.abs(drawn["y"] - inputs["x"] @ inputs["w"].T)))
    assert off[0] > 1000 * off[1]


def test_a_measured_time_may_be_as_short_as_tf32_allows() -> None:
    """A rate is published where hardware has it; elsewhere that of f32 holds."""
    for target, ratio in (("gfx942", 4), ("sm_80", 8), ("gfx950", 1), ("gfx1100", 1)):
        times = []
        for precision in ((), (HIGHEST,)):
            schedule = linear(2048, 2048, 2048, *precision)
            work = work_of(schedule.nodes[0], schedule.lowered, {})
            times.append(limit(work, boards(target)[0]).products_ns)
        assert times[1] / times[0] == pytest.approx(ratio)


def test_cutedsl_says_why_it_has_none() -> None:
    schedule = linear(512, 512, 512)
    found = scheduling_for(schedule, (find("sm_90"),)).candidates(schedule.nodes[0])
    reasons = {one.rejected.reason for one in found.rejected if one.template.startswith("cute")}
    assert any("HIP kernels round to tf32" in reason for reason in reasons), reasons
