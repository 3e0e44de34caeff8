"""Products of elements of 8 bits: integers exactly, floats with scales, on every kind of hardware;
and operands of 8 bits that are converted on their way."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.model import Build, Toolchain
from scheduler.build.toolchains import Search, find_target_toolchains, pick_toolchain
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.encoding import from_bits
from scheduler.targets import find, names
from tests.support.narrow import NARROW, converted_weight, narrow_product
from tests.unit.matrix.running import Runner

Array = np.ndarray[Any, Any]
EMULATED = tuple(name for name in names() if name.startswith("cpu"))
EVERY = pytest.mark.parametrize("dtype", NARROW, ids=lambda dtype: dtype.label)
SMALL = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "THREADS": 128}


def made(schedule: Schedule, *targets: str, **config: int) -> TemplateCaller:
    """The default candidate for these targets, some of its constants exchanged."""
    (node,) = schedule.nodes
    template = ROCmCPPScheduling(schedule, tuple(map(find, targets))).template(node)
    chosen = dict(template.default_config())
    if config:
        chosen.pop("GEMV", None)
    chosen |= config
    rejected = template.reject(chosen)
    assert rejected is None, rejected
    return template.generate(chosen)


def values(rng: np.random.Generator, size: tuple[int, ...], dtype: DType) -> Array:
    """Every number of the type, its extremes and what is below the normal ones among them."""
    codes = rng.integers(0, 256, size).astype(np.uint8)
    if dtype is DType.I8:
        found = codes.view(np.int8).astype(np.int64)
        found[:1] = -128
        return found
    numbers: Array = from_bits(codes, dtype).astype(np.float64)
    return np.where(np.isfinite(numbers), numbers, 0.0)


def assert_right(
    runner: Runner, caller: TemplateCaller, x: Array, w: Array, expected: Array
) -> None:
    """Integers exactly, floats to the roundings of sums in f32."""
    (out,) = runner(caller, {"x": x, "w": w, "sx": np.array(0.5), "sw": np.array(-3.0)}).values()
    if not np.issubdtype(x.dtype, np.floating):
        np.testing.assert_array_equal(out, expected)
        return
    bound = 2.0**-22 * np.abs(x).max() * np.abs(w).max() * x.shape[1] * 1.5
    assert np.abs(out + 1.5 * expected).max() <= bound


@pytest.mark.long(but=4)
@pytest.mark.full(but=["cpu-i8"])
@EVERY
@pytest.mark.parametrize("target", EMULATED)
def test_products_are_right_on_every_kind_of_hardware(
    target: str, dtype: DType, cache: CodeCache, toolchain: Toolchain, rng: np.random.Generator
) -> None:
    """Sizes that fill no tile, and loads of 8 elements."""
    x, w = values(rng, (70, 72), dtype), values(rng, (100, 72), dtype)
    caller = made(narrow_product(70, 100, 72, dtype), target)
    assert caller.kernel.config["VECTOR_A"] == 8
    assert_right(Runner(cache, toolchain, target), caller, x, w, x @ w.T)


@pytest.mark.long(but=4)
@pytest.mark.full(but=["odd-cpu-i8"])
@EVERY
@pytest.mark.parametrize("target", ["cpu", "cpu-gfx950", "cpu-gfx1030"])
@pytest.mark.parametrize(("k", "n"), [(67, 45), (160, 48)], ids=["odd", "wide loads"])
def test_of_operands_that_lie_either_way(
    target: str,
    k: int,
    n: int,
    dtype: DType,
    cache: CodeCache,
    toolchain: Toolchain,
    rng: np.random.Generator,
) -> None:
    x, w = values(rng, (33, k), dtype), values(rng, (k, n), dtype)
    caller = made(narrow_product(33, n, k, dtype, row_major=True), target)
    assert_right(Runner(cache, toolchain, target), caller, x, w, x @ w)


@pytest.mark.long(but=4)
@pytest.mark.full(but=15)
@EVERY
@pytest.mark.parametrize(
    "config",
    [
        {"STAGES": 1},
        {"STAGES": 2},
        {"STAGES": 1, "BLOCK_K": 128, "SPLIT_K": 1},
        {"STAGES": 2, "BLOCK_K": 128, "SPLIT_K": 2},
        {"STAGES": 1, "SPLIT_K": 1, "STREAM_K": 3},
    ],
    ids=str,
)
def test_whatever_the_steps(
    runner: Runner, config: dict[str, int], dtype: DType, rng: np.random.Generator
) -> None:
    """Conversions among a step's products, or before them; several tiles, the last not whole."""
    x, w = values(rng, (64, 656), dtype), values(rng, (80, 656), dtype)
    caller = made(narrow_product(64, 80, 656, dtype), "cpu", **{**SMALL, **config})
    assert_right(runner, caller, x, w, x @ w.T)


@pytest.mark.long(but=4)
@pytest.mark.full(but=["1-i8"])
@EVERY
@pytest.mark.parametrize("rows", [1, 3])
def test_few_rows_are_summed_by_vector_instructions(
    runner: Runner, rows: int, dtype: DType, rng: np.random.Generator
) -> None:
    x, w = values(rng, (rows, 1040), dtype), values(rng, (72, 1040), dtype)
    caller = made(narrow_product(rows, 72, 1040, dtype), "cpu")
    assert caller.kernel.config.get("GEMV") == 1
    assert_right(runner, caller, x, w, x @ w.T)


@pytest.mark.full(but=3)
@pytest.mark.parametrize("k", [16, 80, 528])
def test_tiles_of_integers_are_copied_while_others_are_multiplied(
    runner: Runner, k: int, rng: np.random.Generator
) -> None:
    """NVIDIA's: two neighbours lie where one element of 16 bits would."""
    x, w = values(rng, (70, k), DType.I8), values(rng, (100, k), DType.I8)
    schedule = narrow_product(70, 100, k, DType.I8)
    caller = made(schedule, "sm_90", **SMALL, STAGES=3, ASYNC_COPIES=1, SPLIT_K=1)
    assert_right(runner, caller, x, w, x @ w.T)


@pytest.mark.full(but=["cpu"])
@pytest.mark.parametrize("target", ["cpu", "cpu-gfx950"])
def test_what_is_no_number_comes_through(
    target: str, cache: CodeCache, toolchain: Toolchain
) -> None:
    """NaN and infinities, converted and as they are."""
    for dtype, largest in ((DType.F8E4M3FN, 448.0), (DType.F8E5M2, np.inf)):
        x, w = np.ones((16, 64)), np.ones((16, 64))
        x[0, 3], x[1, 5], x[2, 7] = np.nan, largest, -largest
        inputs = {"x": x, "w": w, "sx": np.array(1.0), "sw": np.array(1.0)}
        caller = made(narrow_product(16, 16, 64, dtype), target)
        (out,) = Runner(cache, toolchain, target)(caller, inputs).values()
        np.testing.assert_array_equal(out, x @ w.T)


@pytest.mark.long(but=4)
@pytest.mark.full(but=["i8-f16"])
@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16, DType.F32], ids=lambda d: d.label)
@pytest.mark.parametrize("weight", [*NARROW, DType.U8], ids=lambda d: d.label)
def test_weights_of_8_bits_are_read_8_at_a_time(
    runner: Runner, weight: DType, dtype: DType, rng: np.random.Generator
) -> None:
    x = rng.integers(-8, 9, (40, 64)).astype(np.float64)
    w = values(rng, (48, 64), DType.I8 if weight is DType.U8 else weight).astype(np.float64)
    w = np.abs(w).clip(0, 100) if weight is DType.U8 else w
    caller = made(converted_weight(40, 48, 64, weight, dtype), "cpu")
    assert caller.kernel.config["VECTOR_B"] == 16 // dtype.itemsize
    (out,) = runner(caller, {"x": x, "w": w}).values()
    expected = x @ w.T
    scale = np.abs(expected[np.abs(expected) < dtype.largest]).max(initial=1.0)
    inside = np.abs(expected) < min(dtype.largest, 65000.0)
    assert np.abs(np.where(inside, out - expected, 0)).max() <= 2 * scale * dtype.eps


def test_two_formats_are_multiplied_as_bf16(runner: Runner, rng: np.random.Generator) -> None:
    x, w = values(rng, (40, 64), DType.F8E4M3FN), values(rng, (48, 64), DType.F8E5M2)
    caller = made(narrow_product(40, 48, 64, DType.F8E4M3FN, second=DType.F8E5M2), "cpu")
    assert "using T = __bf16;" in caller.kernel.source
    assert_right(runner, caller, x, w, x @ w.T)


@pytest.mark.parametrize(
    ("targets", "rows", "held"),
    [
        (("gfx950",), 64, "uint8_t"),
        (("gfx1201",), 64, "uint8_t"),
        (("gfx950", "gfx1201"), 64, "uint8_t"),
        (("gfx942",), 64, "_Float16"),
        (("gfx950", "gfx942"), 64, "_Float16"),
        (("gfx950",), 4, "_Float16"),
        (("sm_90",), 64, "_Float16"),
    ],
    ids=str,
)
def test_floats_stay_as_they_are_where_all_targets_multiply_them(
    targets: tuple[str, ...], rows: int, held: str
) -> None:
    source = made(narrow_product(rows, 64, 64, DType.F8E4M3FN), *targets).kernel.source
    assert f"using T = {held};" in source
    assert ("kiln::instruction::f8e4m3fn" in source) is (held == "uint8_t")


INSTRUCTIONS = {
    "gfx90a": ("v_mfma_i32_16x16x16_?i8", "v_mfma_f32_16x16x16_?f16"),
    "gfx942": ("v_mfma_i32_16x16x32_i8", "v_mfma_f32_16x16x16_f16"),
    "gfx950": ("v_mfma_i32_16x16x64_i8", "v_mfma_f32_16x16x128_f8f6f4"),
    "gfx1030": ("v_mad_", "v_fma_mix_f32|v_fmac_f32"),
    "gfx1100": ("v_wmma_i32_16x16x16_iu8", "v_wmma_f32_16x16x16_f16"),
    "gfx1201": ("v_wmma_i32_16x16x16_iu8", "v_wmma_f32_16x16x16_fp8_fp8"),
    "sm_80": ("IMMA.16832.S8.S8", "HMMA.16816.F32"),
    "sm_90": ("IMMA.16832.S8.S8", "HMMA.16816.F32"),
}


@pytest.mark.long(but=3)
@pytest.mark.full(but=["i8-gfx90a"])
@pytest.mark.parametrize("target", INSTRUCTIONS)
@pytest.mark.parametrize("dtype", [DType.I8, DType.F8E4M3FN], ids=lambda dtype: dtype.label)
def test_the_default_uses_the_targets_instructions(
    target: str, dtype: DType, cache: CodeCache
) -> None:
    caller = made(narrow_product(2240, 2048, 256, dtype), target)
    compiled_for = find(target)
    toolchain = pick_toolchain(
        find_target_toolchains(compiled_for, Search(cache=cache)), compiled_for
    )
    result = build(caller.kernel.source, caller.name, compiled_for, toolchain, cache)
    assert isinstance(result, Build), f"{result.reason}\n{result.detail}"
    for resources in result.resources.values():
        assert not resources.get("vgpr_spills") and not resources.get("spill_store_bytes")
    listing = (result.directory / "kernel.s").read_text()
    assert re.search(rf"\b({INSTRUCTIONS[target][dtype is not DType.I8]})", listing)


# Configurations whose blocks have whole tiles and that serve integers of either layout, and floats,
# as they are or converted; those with asynchronous copies last, of integers along k.
COUNTS = {
    **dict.fromkeys(("gfx90a", "gfx942"), (100, 100, 244, 0)),
    "gfx950": (100, 100, 28, 0),
    **dict.fromkeys(("gfx1030", "gfx1100"), (152, 148, 156, 0)),
    "gfx1201": (152, 148, 152, 0),
    "sm_80": (92, 88, 124, 28),
    **dict.fromkeys(("sm_86", "sm_89", "sm_120"), (92, 88, 124, 24)),
    **dict.fromkeys(("sm_90", "sm_100"), (92, 88, 124, 30)),
}


@pytest.mark.parametrize("target", COUNTS)
def test_no_stratum_is_empty(target: str) -> None:
    def serving(dtype: DType, *, row_major: bool = False, copies: bool = False) -> int:
        schedule = narrow_product(296, 264, 256, dtype, row_major=row_major)
        template = ROCmCPPScheduling(schedule, (find(target),)).template(schedule.nodes[0])
        tiles = (one for one in template.configs() if "STREAM_K" not in one)
        chosen = (one for one in tiles if ("ASYNC_COPIES" in one) is copies)
        return sum(template.reject(one) is None for one in chosen)

    assert COUNTS[target] == (
        *(serving(DType.I8), serving(DType.I8, row_major=True)),
        *(serving(DType.F8E4M3FN), serving(DType.I8, copies=True)),
    )
