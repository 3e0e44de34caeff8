"""Products whose steps along k are shared out among as many blocks as run at once, on emulation."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler import targets
from scheduler.build.cache import CodeCache
from scheduler.build.model import Toolchain
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.rocm.gemm.template import GemmTemplate
from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import SymbolInfo
from scheduler.ir.index.functions import symbol
from tests.unit.codegen.loopnest import run
from tests.unit.matrix.contractions import gathered_gelu, matmul, shared_input
from tests.unit.matrix.running import Runner, random_values, tolerance

KEY = "STREAM_K"
SMALL = {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 128, "THREADS": 128, "STAGES": 1}


def made(schedule: Schedule, target: str) -> GemmTemplate:
    (node,) = schedule.nodes
    template = ROCmCPPScheduling(schedule, (targets.find(target),)).template(node)
    assert isinstance(template, GemmTemplate)
    return template


def sharing(
    schedule: Schedule, blocks: int, target: str = "gfx942", **config: int
) -> TemplateCaller:
    """Small tiles whose steps so many blocks share out."""
    template = made(schedule, target)
    a, b = template.problem.widest_loads()
    chosen = {
        **(SMALL | {"GROUP_M": 8, "SPLIT_K": 1, "VECTOR_A": a, "VECTOR_B": b}),
        **config,
        KEY: blocks,
    }
    return template.generate(chosen)


def assert_close(actual: np.ndarray, expected: np.ndarray, k: int, dtype: DType) -> None:
    assert np.abs(actual - expected).max() <= tolerance(k, dtype, magnitude=4.0)


# 3 x 4 tiles: fewer than blocks and more, some left over and none; of more steps than blocks and of
# fewer, the last one not whole.
@pytest.mark.long(but=3)
@pytest.mark.full(but=["100-1"])
@pytest.mark.parametrize("blocks", [1, 5, 7, 12, 40])
@pytest.mark.parametrize("k", [100, 700])
def test_whatever_is_left_for_all(
    runner: Runner, rng: np.random.Generator, k: int, blocks: int
) -> None:
    x, w, b = (random_values(rng, size, DType.F16) for size in ((70, k), (100, k), (100,)))
    caller = sharing(matmul(70, 100, k, DType.F16, bias=[100], b_transposed=True), blocks)
    out = runner(caller, {"arg0": x, "arg1": w, "bias": b})["buf0"]
    assert_close(out, x @ w.T + b, k, DType.F16)


FAMILIES = [
    ("cpu", DType.F16),
    ("cpu", DType.F32),
    ("cpu", DType.F64),
    ("cpu-gfx90a", DType.BF16),
    ("cpu-gfx950", DType.F16),
    ("cpu-gfx1030", DType.F16),
    ("cpu-gfx1100", DType.BF16),
    ("cpu-gfx1201", DType.F16),
]


@pytest.mark.long(but=3)
@pytest.mark.full(but=["1-cpu-DType.F16"])
@pytest.mark.parametrize(("target", "dtype"), FAMILIES, ids=str)
@pytest.mark.parametrize("stages", [1, 2])
def test_every_family(
    cache: CodeCache,
    toolchain: Toolchain,
    rng: np.random.Generator,
    target: str,
    dtype: DType,
    stages: int,
) -> None:
    """A result whose columns cannot be stored together, of both layouts of B."""
    m, n, k = 67, 45, 333
    x, w = random_values(rng, (m, k), dtype), random_values(rng, (k, n), dtype)
    caller = sharing(matmul(m, n, k, dtype, relu=True), 4, BLOCK_K=64, STAGES=stages)
    out = Runner(cache, toolchain, target)(caller, {"arg0": x, "arg1": w})["buf0"]
    assert_close(out, np.maximum(x @ w, 0), k, dtype)


@pytest.mark.full
def test_several_products_and_batches(runner: Runner, rng: np.random.Generator) -> None:
    columns = (40, 16, 96)
    x = random_values(rng, (50, 300), DType.F16)
    inputs = {"x": x}
    for i, n in enumerate(columns):
        inputs[f"w{i}"] = random_values(rng, (n, 300), DType.F16)
        inputs[f"bias{i}"] = random_values(rng, (n,), DType.F16)
    out = runner(sharing(shared_input(50, columns, 300, DType.F16), 7), inputs)
    for i in range(3):
        expected = x @ inputs[f"w{i}"].T + inputs[f"bias{i}"]
        assert_close(out[f"y{i}"], expected, 300, DType.F16)
    a, b = (random_values(rng, size, DType.F16) for size in ((3, 40, 200), (3, 200, 33)))
    caller = sharing(matmul(40, 33, 200, DType.F16, batch=3), 5)
    assert_close(runner(caller, {"arg0": a, "arg1": b})["buf0"], a @ b, 200, DType.F16)


@pytest.mark.long
def test_an_epilogue_that_reads_through_an_index(runner: Runner, rng: np.random.Generator) -> None:
    dtype = DType.F16
    x, w = random_values(rng, (37, 300), dtype), random_values(rng, (40, 300), dtype)
    scale, residual = random_values(rng, (5, 40), dtype), random_values(rng, (37, 40), dtype)
    ids = rng.integers(0, 5, 37)
    inputs = {"x": x, "w": w, "scale": scale, "residual": residual, "ids": ids}
    out = runner(sharing(gathered_gelu(37, 40, 300, 5, dtype), 6), inputs)
    a = np.tanh(x).astype(np.float16).astype(np.float64)
    assert_close(out["y"], (a @ w.T) * scale[ids] + residual, 300, dtype)


def test_one_kernel_serves_every_size_of_a_symbol(runner: Runner, rng: np.random.Generator) -> None:
    """The workspace's size too; of no rows nothing is launched."""
    symbols = {"s0": SymbolInfo("s0", 2240, 0, None)}
    caller = sharing(matmul(symbol("s0"), 64, 260, DType.F16, symbols=symbols), 5)
    w = random_values(rng, (260, 64), DType.F16)
    for size in (0, 1, 130, 160):
        x = random_values(rng, (size, 260), DType.F16)
        out = runner(caller, {"arg0": x, "arg1": w}, {"s0": size})["buf0"]
        np.testing.assert_allclose(out, x @ w, atol=tolerance(260, DType.F16, magnitude=4.0))


def test_nothing_to_add(runner: Runner, rng: np.random.Generator) -> None:
    x, w, b = (random_values(rng, size, DType.F16) for size in ((5, 0), (0, 6), (6,)))
    caller = sharing(matmul(5, 6, 0, DType.F16, bias=[6]), 3)
    out = runner(caller, {"arg0": x, "arg1": w, "bias": b})["buf0"]
    np.testing.assert_array_equal(out, np.broadcast_to(b, (5, 6)))


@pytest.mark.full(but=["f16"])
@pytest.mark.parametrize("dtype", [DType.F16, DType.F32], ids=lambda dtype: dtype.label)
def test_with_asynchronous_copies(runner: Runner, rng: np.random.Generator, dtype: DType) -> None:
    x, w = random_values(rng, (150, 520), dtype), random_values(rng, (520, 136), dtype)
    schedule = matmul(150, 136, 520, dtype, b_transposed=dtype is DType.F32)
    given = {"arg0": x, "arg1": w.T if dtype is DType.F32 else w}
    sizes = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "THREADS": 128}
    caller = sharing(schedule, 7, "sm_90", **sizes, STAGES=3, ASYNC_COPIES=1)
    assert_close(runner(caller, given)["buf0"], x @ w, 520, dtype)


def test_its_own_instructions_are_right(rng: np.random.Generator) -> None:
    m, n, k = 136, 72, 200
    x, w, b = (random_values(rng, size, DType.F16) for size in ((m, k), (n, k), (n,)))
    given = {"arg0": x, "arg1": w, "bias": b}
    memory = {name: np.ascontiguousarray(each, np.float16).ravel() for name, each in given.items()}
    schedule = matmul(m, n, k, DType.F16, bias=[n], b_transposed=True)
    caller = sharing(schedule, 4, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)
    out = run(caller, memory, target="isa:gfx942")["buf0"].reshape(m, n)
    assert_close(out, x @ w.T + b, k, DType.F16)


def test_the_same_result_in_every_run(runner: Runner, rng: np.random.Generator) -> None:
    x, w = random_values(rng, (40, 1000), DType.F16), random_values(rng, (1000, 40), DType.F16)
    caller = sharing(matmul(40, 40, 1000, DType.F16), 9)
    once, again = (runner(caller, {"arg0": x, "arg1": w})["buf0"] for _ in range(2))
    np.testing.assert_array_equal(once, again)


def test_blocks_are_what_the_board_runs_at_once() -> None:
    schedule = matmul(4096, 2560, 8192, DType.F16, b_transposed=True)
    found = {
        target: {config[KEY] for config in made(schedule, target).configs() if KEY in config}
        for target in ("gfx942", "cpu", "gfx1100", "sm_90")
    }
    assert found == {
        "gfx942": {304, 608}, "cpu": {304, 608}, "gfx1100": {96, 192}, "sm_90": {132, 264}
    }  # fmt: skip
    (node,) = schedule.nodes
    several = tuple(targets.find(name) for name in ("gfx942", "gfx1100", "cpu"))
    template = ROCmCPPScheduling(schedule, several).template(node)
    assert {config[KEY] for config in template.configs() if KEY in config} == {128, 256}


@pytest.mark.parametrize("target", ["gfx942", "sm_90"])
def test_default_where_a_few_tiles_are_left(target: str) -> None:
    """Of 4096x2560 there are 640 of 128x128, some more than what runs at once; of 2048x4096 about
    as many as there should be. On NVIDIA's GPUs the default was measured."""
    template = made(matmul(4096, 2560, 8192, DType.F16, b_transposed=True), target)
    assert (KEY in template.default_config()) == (target == "gfx942")
    assert KEY not in made(matmul(2048, 4096, 4096, DType.F16), target).default_config()


@pytest.mark.parametrize("target", targets.names())
@pytest.mark.parametrize("dtype", [DType.F16, DType.F32, DType.F64], ids=lambda dtype: dtype.label)
def test_every_target_has_candidates(dtype: DType, target: str) -> None:
    template = made(matmul(4000, 4000, 4096, dtype, b_transposed=True), target)
    assert any(KEY in config and template.reject(config) is None for config in template.configs())


def test_what_is_turned_down() -> None:
    template = made(matmul(4096, 4096, 4096, DType.F16, b_transposed=True), "gfx942")
    config = {**template.default_config(), KEY: 512}
    even = template.reject(config)
    assert even is not None
    assert "equal numbers of tiles" in even.reason
    split = template.reject({**config, KEY: 608, "SPLIT_K": 2})
    assert split is not None
    assert "cannot be combined with split-K" in split.reason
    template = made(matmul(128, 4096, 64, DType.F16, b_transposed=True), "gfx942")
    short = template.reject({**config, KEY: 608})
    assert short is not None
    assert "fewer than" in short.reason
