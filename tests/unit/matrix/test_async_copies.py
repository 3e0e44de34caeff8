"""Products whose tiles are copied to shared memory while others are multiplied: NVIDIA's alone.

What they compute is tried on CPU emulation, where copies happen at once; that a GPU waits for them
is for tests/gpu, and what the compiler makes of them for the listing here.
"""

from __future__ import annotations

import re
from itertools import groupby

import numpy as np
import pytest

from scheduler import targets
from scheduler.build.compile import build
from scheduler.build.cuda.toolchains import NAME, CudaToolchain, cuda_compilers
from scheduler.build.model import Build
from scheduler.build.toolchains import Search
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.codegen.template import Config, KernelTemplate
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.isa.reader import reader_of
from tests.support.caches import KEPT
from tests.unit.matrix.contractions import convolution, gathered_gelu, matmul, shared_input
from tests.unit.matrix.running import Runner, random_values, tolerance

KEY = "ASYNC_COPIES"


def made(schedule: Schedule, target: str = "sm_90") -> KernelTemplate:
    (node,) = schedule.nodes
    return ROCmCPPScheduling(schedule, (targets.find(target),)).template(node)


def asynchronous(schedule: Schedule, **config: int) -> TemplateCaller:
    """The first candidate with asynchronous copies, with some of its constants exchanged."""
    template = made(schedule)
    first = next(one for one in template.configs() if KEY in one)
    chosen = {**first, **config}
    rejected = template.reject(chosen)
    assert rejected is None, rejected
    return template.generate(chosen)


SMALL = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "THREADS": 128}


@pytest.mark.long(but=4)
@pytest.mark.full
@pytest.mark.parametrize("block_k", [32, 64, 128])
@pytest.mark.parametrize("dtype", [DType.F16, DType.F32], ids=lambda dtype: dtype.label)
@pytest.mark.parametrize("k", [8, 72, 520])
def test_whatever_the_number_of_tiles(
    runner: Runner, rng: np.random.Generator, k: int, dtype: DType, block_k: int
) -> None:
    """Fewer than are on their way at once, an odd number, and a last one that is not whole."""
    x, w, b = (random_values(rng, size, dtype) for size in ((70, k), (100, k), (100,)))
    schedule = matmul(70, 100, k, dtype, bias=[100], b_transposed=True)
    caller = asynchronous(schedule, **{**SMALL, "BLOCK_K": block_k, "BLOCK_M": 32}, STAGES=4)
    out = runner(caller, {"arg0": x, "arg1": w, "bias": b})["buf0"]
    assert np.abs(out - (x @ w.T + b)).max() <= tolerance(k, dtype, magnitude=4.0)


@pytest.mark.long(but=4)
@pytest.mark.full
@pytest.mark.parametrize("tile", [(64, 64, 64), (32, 64, 32), (16, 32, 32)], ids=str)
@pytest.mark.parametrize("a_turned", [False, True], ids=["a along k", "a along m"])
def test_operands_that_are_contiguous_along_their_rows(
    runner: Runner, rng: np.random.Generator, a_turned: bool, tile: tuple[int, int, int]
) -> None:
    """Copied as they lie, and transposed as they are read: lines of every length."""
    m, n, k = 72, 104, 88
    x, w = random_values(rng, (m, k), DType.F16), random_values(rng, (k, n), DType.F16)
    schedule = matmul(m, n, k, DType.F16, a_stride=(1, m) if a_turned else None)
    block_m, block_n, block_k = tile
    sizes = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k, "THREADS": 64}
    out = runner(asynchronous(schedule, **sizes, STAGES=3), {"arg0": x, "arg1": w})["buf0"]
    assert np.abs(out - x @ w).max() <= tolerance(k, DType.F16, magnitude=4.0)


def test_nothing_to_add(runner: Runner, rng: np.random.Generator) -> None:
    x, w, b = (random_values(rng, size, DType.F16) for size in ((5, 0), (6, 0), (6,)))
    caller = asynchronous(matmul(5, 6, 0, DType.F16, bias=[6], b_transposed=True), **SMALL)
    out = runner(caller, {"arg0": x, "arg1": w, "bias": b})["buf0"]
    np.testing.assert_array_equal(out, np.broadcast_to(b, (5, 6)))


@pytest.mark.full
def test_parts_of_k_and_several_weights(runner: Runner, rng: np.random.Generator) -> None:
    columns = (40, 16, 96)
    x = random_values(rng, (50, 1032), DType.F16)
    weights = [random_values(rng, (n, 1032), DType.F16) for n in columns]
    biases = [random_values(rng, (n,), DType.F16) for n in columns]
    inputs = {"x": x}
    for i in range(3):
        inputs |= {f"w{i}": weights[i], f"bias{i}": biases[i]}
    caller = asynchronous(shared_input(50, columns, 1032, DType.F16), **SMALL, SPLIT_K=8)
    out = runner(caller, inputs)
    for i in range(3):
        error = np.abs(out[f"y{i}"] - (x @ weights[i].T + biases[i])).max()
        assert error <= tolerance(1032, DType.F16, magnitude=4.0)


def test_a_window_with_padding(runner: Runner, rng: np.random.Generator) -> None:
    """What lies outside of the image is not read: the copy gives zeros."""
    x, w = (random_values(rng, s, DType.F16) for s in ((2, 8, 9, 11), (24, 8, 3, 3)))
    schedule = convolution(x.shape, w.shape, DType.F16, padding=1, channels_last=True)
    out = runner(asynchronous(schedule, **SMALL), {"x": x, "w": w})["y"]
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    expected = sum(
        np.einsum("bchw,oc->bohw", padded[:, :, i : i + 9, j : j + 11], w[:, :, i, j])
        for i in range(3)
        for j in range(3)
    )
    assert np.abs(out - expected).max() <= tolerance(72, DType.F16, magnitude=4.0)


def test_beyond_the_end_of_k_nothing_is_copied(runner: Runner, rng: np.random.Generator) -> None:
    """What a mask lets through would meet zeros there: an infinity would become NaN."""
    x, w = (random_values(rng, s, DType.F16) for s in ((1, 8, 4, 4), (8, 8, 3, 3)))
    x[0, 0, 0, 0] = np.inf  # the first of k, at the pixel in the second row and column
    schedule = convolution(x.shape, w.shape, DType.F16, padding=1, channels_last=True)
    out = runner(asynchronous(schedule, **SMALL), {"x": x, "w": w})["y"]
    assert not np.isnan(out).any()
    np.testing.assert_array_equal(out[0, :, 1, 1], np.copysign(np.inf, w[:, 0, 0, 0]))


def reasons(schedule: Schedule, target: str) -> set[str]:
    template = made(schedule, target)

    def reason(config: Config) -> str:
        rejected = template.reject(config)
        return rejected.reason if rejected else ""

    return {reason(config) for config in template.configs() if KEY in config}


@pytest.mark.parametrize(
    ("dtype", "counts"),
    [
        (
            DType.F16,
            {"sm_80": 34, "sm_86": 30, "sm_89": 30, "sm_90": 36, "sm_100": 36, "sm_120": 30},
        ),
        (DType.F32, {"sm_80": 21, "sm_86": 2, "sm_89": 2, "sm_90": 29, "sm_100": 29, "sm_120": 2}),
        (DType.F64, {"sm_80": 2, "sm_86": 0, "sm_89": 0, "sm_90": 8, "sm_100": 8, "sm_120": 0}),
    ],
    ids=["f16", "f32", "f64"],
)
def test_how_many_serve(dtype: DType, counts: dict[str, int]) -> None:
    """Of 50: a search has them beside the two hundred others."""
    schedule = matmul(2240, 2048, 768, dtype, b_transposed=True)
    found = {}
    for target in counts:
        template = made(schedule, target)
        those = [
            config for config in template.configs() if KEY in config and "STREAM_K" not in config
        ]
        assert len(those) == 50
        found[target] = sum(template.reject(config) is None for config in those)
    assert found == counts


LARGE = matmul(4096, 4096, 4096, DType.BF16, b_transposed=True, bias=[4096])
LINEAR = matmul(256, 256, 512, DType.F16, b_transposed=True)


@pytest.mark.parametrize(
    ("schedule", "target", "said"),
    [
        (LINEAR, "gfx942", {"asynchronous copies to LDS are not supported on gfx942"}),
        (LINEAR, "cpu", {"asynchronous copies to LDS are not supported on gfx942"}),
        (
            matmul(64, 64, 64, DType.F32),
            "sm_90",
            {"B0 is transposed while it is loaded, which is supported only for 16-bit elements"},
        ),
        (gathered_gelu(64, 64, 64, 8, DType.F16), "sm_90", {"A is computed element by element"}),
        (
            matmul(64, 64, 63, DType.F16, b_transposed=True),
            "sm_90",
            {"A is read 2 bytes at a time, not 4, 8 or 16"},
        ),
    ],
    ids=["gfx942", "its emulation", "transposed", "computed", "unaligned"],
)
def test_what_cannot_be_copied_says_why(schedule: Schedule, target: str, said: set[str]) -> None:
    found = reasons(schedule, target)
    assert "" not in found
    assert {one.removeprefix("asynchronous copies are not supported: ") for one in found} >= said


def test_kernels_without_them_do_not_name_them() -> None:
    template = made(LINEAR)
    plain = next(one for one in template.configs() if KEY not in one)
    assert not re.search(r"async|copies|staged", template.render(plain).source, re.IGNORECASE)


@pytest.mark.parametrize(
    ("schedule", "tile"),
    [
        (matmul(4096, 4096, 4096, DType.BF16, b_transposed=True), (256, 128, 64)),
        (matmul(16, 14336, 4096, DType.BF16, b_transposed=True), (16, 64, 128)),
        (matmul(2048, 2048, 2048, DType.F32, b_transposed=True), (256, 128, 32)),
    ],
    ids=["large", "few rows", "f32"],
)
def test_they_are_the_default_where_every_target_has_them(
    schedule: Schedule, tile: tuple[int, int, int]
) -> None:
    """Of the tiles that an H200 was fastest with, one; and none in a source that AMD takes too."""
    alone = made(schedule).default_config()
    assert alone[KEY] == 1
    assert tuple(alone[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K")) == tile
    both = ROCmCPPScheduling(schedule, (targets.find("sm_90"), targets.find("gfx942")))
    assert KEY not in both.template(schedule.nodes[0]).default_config()


def test_without_a_configuration_that_copies_the_default_is_another() -> None:
    assert KEY not in made(matmul(64, 64, 64, DType.F32)).default_config()


@pytest.mark.full(but=["weights of [n, k]"])
@pytest.mark.parametrize("transposed", [True, False], ids=["weights of [n, k]", "of [k, n]"])
def test_the_compiler_makes_asynchronous_copies_of_them(transposed: bool) -> None:
    """16 bytes each, past the registers: no wide load of the tiles is left."""
    compilers = {one.name: one for one in cuda_compilers(Search(cache=KEPT))}
    toolchain = compilers[NAME]
    assert isinstance(toolchain, CudaToolchain), toolchain
    schedule = matmul(256, 256, 512, DType.F16, b_transposed=transposed)
    caller = asynchronous(schedule, **SMALL)
    result = build(caller.kernel.source, caller.name, targets.find("sm_90"), toolchain, KEPT)
    assert isinstance(result, Build), result
    listing = (result.directory / "kernel.s").read_text()
    assert re.search(r"LDGSTS\.E\.BYPASS(\.\w+)*\.128", listing)
    assert "LDGDEPBAR" in listing
    assert "LDSM.16.M88.4" in listing, "four matrices at once, as the instruction wants them"
    assert ("LDSM.16.MT88.4" in listing) is not transposed
    assert not re.search(r"\bSTS\.\w*128", listing)
    assert not re.search(r"\bLDG\.E(\.\w+)*\.128", listing)
    (found,) = result.resources.values()
    assert found["shared_bytes"] == caller.kernel.launches[0].lds_bytes


@pytest.mark.full
def test_the_loop_of_a_large_product_multiplies_while_it_reads() -> None:
    """A barrier a tile; what one step wants comes while the one before is multiplied; results are
    stored 16 bytes at once, by code that is there once for all rows."""
    compilers = {one.name: one for one in cuda_compilers(Search(cache=KEPT))}
    caller = asynchronous(LARGE, **made(LARGE).default_config())
    target = targets.find("sm_90")
    result = build(caller.kernel.source, caller.name, target, compilers[NAME], KEPT)
    assert isinstance(result, Build), result
    (found,) = result.resources.values()
    assert (found["spill_store_bytes"], found["spill_load_bytes"]) == (0, 0)
    assert int(str(found["code_bytes"])) < 64 * 1024
    listing = reader_of(target).parse((result.directory / "kernel.s").read_text())
    names = [one.mnemonic.split(".")[0] for one in listing.functions[0].instructions]
    first, last = names.index("HMMA"), len(names) - names[::-1].index("HMMA")
    loop = names[first:last]
    assert loop.count("HMMA") == 128  # 64x64x64 by 16x8x16
    assert loop.count("BAR") == 1
    apart = max(len(list(run)) for is_it, run in groupby(loop, "HMMA".__ne__) if is_it)
    assert apart < 60, "reads of a step lie between products of another"
    stores = {one.mnemonic for one in listing.functions[0].instructions if "STG" in one.mnemonic}
    assert "STG.E.128" in stores
