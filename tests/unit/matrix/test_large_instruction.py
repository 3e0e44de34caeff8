"""Matrix products by the instructions whose result is 32x32: a choice where there are some."""

from __future__ import annotations

import re

import numpy as np
import pytest

from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.model import Build, Toolchain
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.matrix_instructions import MatrixInstruction
from scheduler.targets import find, names
from scheduler.targets.generations import AMD_TARGETS
from scheduler.targets.model import hip_hardware
from scheduler.tuning.space import Space
from tests.unit.matrix.contractions import convolution, matmul, shared_input
from tests.unit.matrix.running import Runner, in_listings, random_values, tolerance

NAME = "MATRIX_INSTR_NONKDIM"
LARGE = [
    (gpu.name, dtype, instruction)
    for gpu in AMD_TARGETS
    for dtype in ("f16", "bf16", "f32")
    if (instruction := hip_hardware(gpu).matrix_instruction(dtype, 32)) is not None
]


def backend(schedule: Schedule, *targets: str) -> ROCmCPPScheduling:
    return ROCmCPPScheduling(schedule, tuple(find(name) for name in targets))


def candidates(schedule: Schedule, *targets: str) -> list[TemplateCaller]:
    """Those with the larger instruction."""
    found = backend(schedule, *targets).candidates(schedule.nodes[0])
    return [caller for caller in found.callers if NAME in caller.kernel.config]


def largest(callers: list[TemplateCaller], **config: int) -> TemplateCaller:
    """The one with the largest tile among those of a configuration."""

    def area(caller: TemplateCaller) -> int:
        return int(caller.kernel.config["BLOCK_M"]) * int(caller.kernel.config["BLOCK_N"])

    wanted = {"STAGES": 1, "SPLIT_K": 1, **config}
    return max((c for c in callers if wanted.items() <= c.kernel.config.items()), key=area)


@pytest.mark.long(but=4)
@pytest.mark.full(but=["gfx90a-f16-mfma_f32_32x32x8f16"])
@pytest.mark.parametrize(
    ("target", "dtype", "instruction"), LARGE, ids=lambda value: getattr(value, "name", value)
)
def test_the_listing_shows_it_and_nothing_is_spilled(
    target: str,
    dtype: str,
    instruction: MatrixInstruction,
    toolchain: Toolchain,
    cache: CodeCache,
) -> None:
    schedule = matmul(2240, 2048, 256, DType.from_label(dtype), b_transposed=True)
    caller = largest(candidates(schedule, "gfx90a", "gfx942", "gfx950", "cpu"))
    result = build(caller.kernel.source, caller.name, find(target), toolchain, cache)
    assert isinstance(result, Build), f"{result.reason}\n{result.detail}"
    listing = (result.directory / "kernel.s").read_text()
    found = set(re.findall(r"^\s+(v_mfma_\w+)", listing, re.MULTILINE))
    assert {bool(re.match(in_listings(instruction), name)) for name in found} == {True}
    for resources in result.resources.values():
        assert (resources["vgpr_spills"], resources["scratch_bytes"]) == (0, 0)


@pytest.mark.long(but=4)
@pytest.mark.full(but=["f16-cpu"])
@pytest.mark.parametrize("target", ["cpu", "cpu-gfx90a", "cpu-gfx950"])
@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16, DType.F32], ids=lambda d: d.label)
def test_it_is_right_at_sizes_that_fill_no_tile(
    cache: CodeCache, toolchain: Toolchain, rng: np.random.Generator, target: str, dtype: DType
) -> None:
    x, w, b = (random_values(rng, size, dtype) for size in ((70, 72), (100, 72), (100,)))
    schedule = matmul(70, 100, 72, dtype, bias=[100], b_transposed=True)
    caller = largest(candidates(schedule, target), THREADS=256)
    out = Runner(cache, toolchain, target)(caller, {"arg0": x, "arg1": w, "bias": b})
    assert np.abs(out["buf0"] - (x @ w.T + b)).max() <= tolerance(72, dtype, magnitude=4.0)


@pytest.mark.full(but=2)
@pytest.mark.parametrize("split_k", [1, 2])
def test_several_weights_split_k_and_two_stages(
    runner: Runner, rng: np.random.Generator, split_k: int
) -> None:
    columns = (40, 16, 96)
    x = random_values(rng, (50, 264), DType.F16)
    weights = [random_values(rng, (n, 264), DType.F16) for n in columns]
    callers = candidates(shared_input(50, columns, 264, DType.F16, bias=False), "cpu")
    caller = largest(callers, SPLIT_K=split_k, STAGES=2, BLOCK_N=64)
    out = runner(caller, {"x": x, **{f"w{i}": weights[i] for i in range(3)}})
    for i in range(3):
        error = np.abs(out[f"y{i}"] - x @ weights[i].T).max()
        assert error <= tolerance(264, DType.F16, magnitude=4.0)


def test_a_padded_window(runner: Runner, rng: np.random.Generator) -> None:
    x, w = (random_values(rng, size, DType.F16) for size in ((2, 8, 9, 7), (80, 8, 3, 3)))
    schedule = convolution((2, 8, 9, 7), (80, 8, 3, 3), DType.F16, padding=1)
    caller = largest(candidates(schedule, "cpu"), BLOCK_N=64)
    assert caller.kernel.template == "convolution"
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3)
    )
    expected = np.einsum("ncyxhw,ochw->noyx", windows, w)
    error = np.abs(runner(caller, {"x": x, "w": w})["y"] - expected).max()
    assert error <= tolerance(72, DType.F16, magnitude=4.0)


@pytest.mark.long
def test_every_tile_of_the_list_is_right(runner: Runner, rng: np.random.Generator) -> None:
    schedule = matmul(33, 65, 72, DType.F16)
    x, w = (random_values(rng, size, DType.F16) for size in ((33, 72), (72, 65)))
    plain = [c for c in candidates(schedule, "cpu") if c.kernel.config["STAGES"] == 1]
    assert len(plain) > 8
    for caller in plain:
        error = np.abs(runner(caller, {"arg0": x, "arg1": w})["buf0"] - x @ w).max()
        assert error <= tolerance(72, DType.F16, magnitude=4.0), caller.description


@pytest.mark.parametrize("target", ["gfx1030", "gfx1100", "gfx1201"])
def test_a_target_without_it_says_so(target: str) -> None:
    schedule = matmul(2240, 2048, 2560, DType.F16)
    wanted = f"no 32x32 matrix instruction for elements of type f16 on {target}"
    for served in ((target,), ("gfx942", target), ("cpu", f"cpu-{target}")):
        found = backend(schedule, *served).candidates(schedule.nodes[0])
        assert not any(NAME in caller.kernel.config for caller in found.callers)
        reasons = {one.rejected.reason for one in found.rejected if NAME in dict(one.config)}
        assert wanted in reasons
        assert all(reason == wanted or "bytes of LDS" in reason for reason in reasons)


def test_double_precision_has_none() -> None:
    assert candidates(matmul(512, 512, 512, DType.F64), "gfx942") == []


def test_it_never_is_the_default_whose_text_serves_all_targets() -> None:
    for schedule in (
        matmul(4096, 4096, 4096, DType.F16),
        convolution((1, 8, 224, 224), (64, 8, 7, 7), DType.F16, padding=3),
    ):
        made = backend(schedule, "gfx942").default(schedule.nodes[0])
        assert NAME not in made.kernel.config
        assert NAME not in made.kernel.source


def test_the_text_names_it_and_the_kernels_differ() -> None:
    schedule = matmul(2240, 2048, 2560, DType.F16)
    larger = candidates(schedule, "gfx942")
    found = backend(schedule, "gfx942").candidates(schedule.nodes[0]).callers
    assert len({caller.name for caller in found}) == len(found)
    assert all(f"constexpr int {NAME} = 32;" in caller.kernel.source for caller in larger)
    marked = {
        number: caller.kernel.source.splitlines()[number - 1]
        for caller in larger[:1]
        for number in [
            line
            for origin in caller.kernel.line_origins
            for line in range(origin.first, origin.last + 1)
        ]
    }
    assert any("tile.multiply" in text for text in marked.values())


@pytest.mark.full(but=["gfx90a", "cpu-gfx1201"])
@pytest.mark.parametrize("target", names())
def test_a_search_over_both_sizes_has_a_coordinate_for_it(target: str) -> None:
    schedule = matmul(2240, 2048, 2560, DType.F16)
    found = backend(schedule, target).candidates(schedule.nodes[0]).callers
    space = Space(tuple(caller.kernel.config for caller in found))
    assert (NAME in space.parameters) == bool(candidates(schedule, target))
    assert len(np.unique(space.coordinates, axis=0)) == len(found)
