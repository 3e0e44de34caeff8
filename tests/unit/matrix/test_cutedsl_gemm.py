"""Matrix products in CuteDSL without a GPU: which problems they serve, how, that NVIDIA's compiler
takes their text, and that all but TMA and wgmma is right. tests/gpu/test_cutedsl_gemm.py holds
the whole against NumPy."""

from __future__ import annotations

import re

import numpy as np
import pytest

from scheduler.build.compile import build
from scheduler.build.model import Build
from scheduler.build.toolchains import Search, find_target_toolchains, pick_toolchain
from scheduler.codegen.cutedsl.convolution import ConvolutionTemplate
from scheduler.codegen.cutedsl.gemm.template import GemmTemplate
from scheduler.codegen.cutedsl.scheduling import CuteDSLScheduling
from scheduler.codegen.languages import CUTEDSL_SOURCE
from scheduler.codegen.template import Config
from scheduler.errors import Stage, UserError
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.targets import find
from tests.support.caches import KEPT
from tests.support.cutedsl_gemm import run
from tests.support.cutedsl_products import PRODUCTS
from tests.unit.matrix.contractions import convolution, gathered_gelu, matmul

SM_90 = find("sm_90")
F16, BF16 = DType.F16, DType.BF16


def template(schedule: Schedule, *targets: str) -> GemmTemplate:
    named = tuple(find(name) for name in targets or ("sm_90",))
    return GemmTemplate(schedule.nodes[0], schedule.lowered, named)


def reason(made: GemmTemplate, **config: int | str) -> str:
    given: Config = {**next(iter(made.configs())), **config}
    rejected = made.reject(given)
    assert rejected is not None and rejected.stage is Stage.RULE
    return rejected.reason


def windows(
    *,
    channels: int = 128,
    kernel: int = 3,
    padding: int = 1,
    stride: int = 1,
    groups: int = 1,
    channels_last: bool = True,
) -> Schedule:
    return convolution(
        (2, channels, 40, 40),
        (64, channels // groups, kernel, kernel),
        F16,
        padding=padding,
        stride=stride,
        groups=groups,
        channels_last=channels_last,
    )


LARGE = matmul(4096, 4096, 4096, BF16, b_transposed=True)


def test_what_hinders_a_problem_is_said_of_each_configuration() -> None:
    assert "wgmma requires sm_90a" in reason(template(LARGE, "sm_90", "sm_100"))
    single = template(matmul(4096, 4096, 4096, DType.F32))
    assert "CuteDSL matrix products of f32 are not supported" in reason(single)
    with pytest.raises(UserError, match=r"no configuration of cutedsl_gemm is valid for mm\("):
        single.default_config()


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"STAGES": 5}, "246784 bytes of shared memory exceed the limit of 232448 on sm_90"),
        ({"BLOCK_M": 256, "STAGES": 2}, "256 accumulators per thread exceed the limit of 128"),
        ({"SPLIT_K": 64}, "split-K 64 leaves fewer than two steps of 64 per part of k=4096"),
        ({"SPLIT_K": 2, "schedule": "pingpong"}, "pingpong needs equal lengths"),
        ({"CLUSTER_M": 64}, "a cluster of 64 tiles of 128 exceeds m=4096"),
    ],
    ids=lambda value: "" if isinstance(value, str) else " ".join(value),
)
def test_rules_name_the_limit(config: dict[str, int | str], said: str) -> None:
    assert said in reason(template(LARGE), **config)


@pytest.mark.parametrize(
    ("schedule", "operand", "why"),
    [
        (gathered_gelu(64, 64, 64, 9, F16), "a", "A is computed element by element"),
        (
            matmul(64, 64, 60, F16),
            "a",
            "A has a stride or offset of 60, which is not a multiple of 16",
        ),
        (matmul(64, 60, 64, F16), "b0", "B0 has a stride or offset of 60"),
        (matmul(64, 64, 64, F16, a_stride=(128, 2)), "a", "no axis of A is contiguous"),
    ],
    ids=["computed", "rows", "columns", "steps"],
)
def test_an_operand_that_tma_cannot_load_is_packed_before(
    schedule: Schedule, operand: str, why: str
) -> None:
    """And the choice to load it as it lies is turned down with the reason."""
    made = template(schedule)
    config = made.default_config()
    assert config["prologue"] == "separate"
    assert why in reason(made, prologue="fused")
    kernel = made.generate(config).kernel
    first, tiles = kernel.launches
    assert first.function == f"{kernel.name}_pack_{operand}_0"
    assert tiles.function == f"{kernel.name}_tiles_1"
    assert kernel.workspace_bytes != 0


def test_operands_that_lie_well_need_no_workspace() -> None:
    for schedule in (
        LARGE,
        matmul(72, 96, 33, F16, a_stride=(1, 264)),  # k is no run of either
        matmul(40, 96, 80, BF16, batch=3),
    ):
        kernel = template(schedule).generate(template(schedule).default_config()).kernel
        assert "prologue" not in kernel.config
        (launch,) = kernel.launches
        assert (launch.function, kernel.workspace_bytes) == (f"{kernel.name}_tiles_0", 0)


def test_a_convolution_packs_its_windows_sixteen_bytes_at_a_time() -> None:
    """Channels last they are copies behind a mask; a window of one pixel needs none."""
    windows = PRODUCTS["windows, channels last"].caller().kernel
    assert [launch.function.rpartition("_")[0] for launch in windows.launches] == [
        f"{windows.name}_pack_a",
        f"{windows.name}_tiles",
    ]
    assert "elements.store(cute.make_tensor(place, cute.make_layout(8)).load())" in windows.source
    assert len(PRODUCTS["pixels"].caller().kernel.launches) == 1


def test_windows_of_whole_steps_are_loaded_from_where_they_lie() -> None:
    """Of 64 channels or a multiple, channels last: no kernel comes before, and no workspace."""
    kernel = PRODUCTS["windows from where they lie"].caller().kernel
    assert kernel.config["prologue"] == "fused"
    assert [launch.function for launch in kernel.launches] == [f"{kernel.name}_tiles_0"]
    assert kernel.workspace_bytes == 0
    assert "lower_corner_whd=(-1, -1, 0), upper_corner_whd=(-1, -1, 0)" in kernel.source
    weights_apart = PRODUCTS["windows of weights that are packed"].caller().kernel
    assert [launch.function.rpartition("_")[0] for launch in weights_apart.launches] == [
        f"{weights_apart.name}_pack_b0",
        f"{weights_apart.name}_tiles",
    ]


@pytest.mark.parametrize(
    ("schedule", "why"),
    [
        (windows(channels=96), "a window of A has 96 channels, which is not a multiple of 64"),
        (windows(groups=2), "A has grouped windows"),
        (
            windows(padding=17, kernel=35),
            "A has corners of (-17, -17), which are outside -16 to 15",
        ),
        (windows(stride=9), "A has a stride of 9, which exceeds the limit of 8"),
        (windows(channels_last=False), "B0 is masked, so TMA cannot load it in place"),
    ],
    ids=["channels", "groups", "corners", "stride", "channels first"],
)
def test_other_windows_are_packed_before(schedule: Schedule, why: str) -> None:
    """What a descriptor of windows cannot say."""
    made = ConvolutionTemplate(schedule.nodes[0], schedule.lowered, (SM_90,))
    assert made.default_config()["prologue"] == "separate"
    rejected = made.reject({**made.default_config(), "prologue": "fused"})
    assert rejected is not None
    assert why in rejected.reason


def test_a_step_along_k_is_of_one_place_of_the_window() -> None:
    schedule = windows(channels=192)
    made = ConvolutionTemplate(schedule.nodes[0], schedule.lowered, (SM_90,))
    deep = next(one for one in made.configs() if one["BLOCK_K"] == 128)
    rejected = made.reject(deep)
    assert rejected is not None
    assert "BLOCK_K 128 does not divide the 192 channels of a window" in rejected.reason


def test_sizes_are_arguments() -> None:
    """Problems that differ in numbers alone share one kernel."""
    config = template(LARGE).default_config()
    kernels = {
        template(matmul(m, 4096, k, BF16, b_transposed=True)).generate(config).kernel.name
        for m, k in ((4096, 4096), (1024, 512), (200, 4096))
    }
    assert len(kernels) == 1


@pytest.mark.parametrize(
    ("m", "n", "k", "said"),
    [
        (4096, 4096, 4096, {"BLOCK_M": 128, "BLOCK_N": 128, "CLUSTER_M": 2, "SPLIT_K": 1}),
        (8192, 8192, 8192, {"BLOCK_M": 128, "CLUSTER_M": 2, "SPLIT_K": 1}),
        (16, 4096, 14336, {"BLOCK_M": 64, "CLUSTER_M": 1}),
        (200, 96, 64, {"BLOCK_M": 64, "SPLIT_K": 1}),
    ],
)
def test_the_default_goes_by_the_size(m: int, n: int, k: int, said: dict[str, int]) -> None:
    config = template(matmul(m, n, k, BF16, b_transposed=True)).default_config()
    assert {name: config[name] for name in said} == said


@pytest.mark.parametrize(
    ("images", "channels", "side", "said"),
    [
        (2, 320, 64, {"BLOCK_N": 192, "CLUSTER_N": 2}),
        (32, 256, 14, {"BLOCK_N": 128, "CLUSTER_N": 2}),
        (32, 512, 7, {"BLOCK_N": 128, "CLUSTER_N": 2}),
        # One tile of columns: a second would be computed for nothing.
        (32, 128, 28, {"BLOCK_M": 256, "CLUSTER_N": 1}),
    ],
)
def test_blocks_beside_each_other_share_windows_where_that_adds_no_tile(
    images: int, channels: int, side: int, said: dict[str, int]
) -> None:
    x, w = (images, channels, side, side), (channels, channels, 3, 3)
    schedule = convolution(x, w, F16, padding=1, channels_last=True)
    made = ConvolutionTemplate(schedule.nodes[0], schedule.lowered, (SM_90,))
    config = made.default_config()
    assert {name: config[name] for name in said} == said


def test_few_rows_of_a_long_k_are_split() -> None:
    config = template(matmul(16, 4096, 14336, BF16, b_transposed=True)).default_config()
    assert int(config["SPLIT_K"]) > 1


def test_an_epilogue_may_be_a_kernel_of_its_own() -> None:
    made = template(matmul(512, 512, 512, F16, bias=(512,), relu=True))
    ways = {str(config["epilogue"]) for config in made.configs() if made.reject(config) is None}
    assert ways == {"fused", "separate"}
    plain = template(matmul(512, 512, 512, F16))
    assert all("epilogue" not in config for config in plain.configs())


def test_every_configuration_is_a_candidate_or_rejected() -> None:
    backend = CuteDSLScheduling(LARGE, (SM_90,))
    (node,) = LARGE.nodes
    found = backend.candidates(node)
    assert len({caller.kernel.name for caller in found.callers}) == len(found.callers) == 210
    assert len(found.callers) + len(found.rejected) == 264
    assert backend.is_cutedsl_template(node)
    assert not backend.is_cutedsl_fused_template(node)


RUN = (
    "odd columns",
    "odd columns of several tiles",
    "odd columns in batches",
    "columns known at run time, odd",
    "columns known at run time, even",
    "three with odd columns",
    "two columns at a time",
    "heads side by side",
    "rows before others",
    "windows, channels last",
    "windows, channels first",
    "windows in groups",
    "windows from where they lie",
    "windows, two apart",
    "windows, dilated",
    "windows inside",
    "windows of weights that are packed",
    "heads as windows",
    "pixels",
    "no k",
    "no rows",
    "one of three without columns",
    "packed, one of three without columns",
    "three, split",
)


@pytest.mark.long(but=5)
@pytest.mark.full
@pytest.mark.parametrize("name", RUN)
def test_what_lies_around_the_multiplication_is_right(name: str) -> None:
    """Packed operands, the tensors that TMA is given, sums of parts, epilogues and stores, with
    NumPy in place of TMA and wgmma."""
    product = PRODUCTS[name]
    inputs = product.inputs(np.random.default_rng(3))
    found = run(product.caller(), inputs, product.bindings)
    for buffer, expected in product.expected(inputs).items():
        error = np.linalg.norm(found[buffer] - expected)
        assert error <= 3e-3 * np.linalg.norm(expected)


COMPILED = {
    "128x128, pingpong": ({"tiles_0": 384}, {"multicast::cluster", "setmaxnreg.inc"}),
    "three, split": (
        {"tiles_0": 384, "finish0_1": 256, "finish1_2": 256, "finish2_3": 256},
        {"cp.async.bulk.tensor", "wgmma.mma_async"},
    ),
    "computed and gathered": ({"pack_a_0": 256, "tiles_1": 256}, {"wgmma.mma_async"}),
    "odd columns, pingpong": ({"tiles_0": 384}, {"st.global.v4.b32"}),
    "odd columns, 128x256": ({"tiles_0": 384}, {"st.global.v4.b32"}),
    "windows from where they lie": ({"tiles_0": 384}, {"cp.async.bulk.tensor.5d", ".im2col."}),
    "windows, pairs along n": ({"tiles_0": 384}, {".im2col.", "multicast::cluster"}),
}


@pytest.mark.long(but=4)
@pytest.mark.full
@pytest.mark.parametrize("name", COMPILED)
def test_nvidias_compiler_takes_it(name: str) -> None:
    """Nothing is spilled, and threads and shared memory are those of the record."""
    threads, instructions = COMPILED[name]
    kernel = PRODUCTS[name].caller().kernel
    toolchain = pick_toolchain(find_target_toolchains(SM_90, Search()), SM_90, CUTEDSL_SOURCE)
    made = build(kernel.source, kernel.name, SM_90, toolchain, KEPT, source_file=CUTEDSL_SOURCE)
    assert isinstance(made, Build), f"{made.reason}\n{made.detail}"
    found = {name.removeprefix(f"{kernel.name}_"): facts for name, facts in made.resources.items()}
    assert {name: facts["threads"] for name, facts in found.items()} == threads
    for launch in kernel.launches:
        facts = made.resources[launch.function]
        assert (facts["shared_bytes"], facts["threads"]) == (launch.lds_bytes, launch.block[0])
        assert (facts["spill_store_bytes"], facts["spill_load_bytes"]) == (0, 0)
    ptx = (made.directory / "kernel.ptx").read_text()
    assert all(re.search(re.escape(one), ptx) for one in instructions)
