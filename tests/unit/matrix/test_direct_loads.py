"""Products whose loads write LDS themselves (gfx950), emulated, and by their own instructions."""

from __future__ import annotations

import re

import numpy as np
import pytest

from scheduler import targets
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.model import Build, Toolchain
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.rocm.gemm.template import GemmTemplate
from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.cycles.launch_inputs import prepare_launches
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.isa.rocm.emulator.program import program_of
from scheduler.isa.rocm.emulator.run import run as emulate
from tests.unit.codegen.loopnest import run
from tests.unit.matrix.contractions import matmul, shared_input
from tests.unit.matrix.running import Runner, random_values, tolerance

KEY = "DIRECT_TO_LDS"
SMALL = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "THREADS": 256}


def made(schedule: Schedule, target: str = "gfx950") -> GemmTemplate:
    (node,) = schedule.nodes
    template = ROCmCPPScheduling(schedule, (targets.find(target),)).template(node)
    assert isinstance(template, GemmTemplate)
    return template


def direct(schedule: Schedule, **config: int) -> TemplateCaller:
    """The first candidate with such loads, with some of its constants exchanged."""
    template = made(schedule)
    first = next(one for one in template.configs() if KEY in one)
    chosen = {**first, **SMALL, **config}
    rejected = template.reject(chosen)
    assert rejected is None or "stream-K" in rejected.reason, rejected
    return template.generate(chosen)


@pytest.fixture(scope="module")
def gfx950(cache: CodeCache, toolchain: Toolchain) -> Runner:
    return Runner(cache, toolchain, "cpu-gfx950")


def assert_close(actual: np.ndarray, expected: np.ndarray, k: int, dtype: DType) -> None:
    assert np.abs(actual - expected).max() <= tolerance(k, dtype, magnitude=4.0)


# Fewer tiles than are on their way at once, as many, and more; the last one whole and not.
@pytest.mark.long(but=4)
@pytest.mark.full
@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("k", [8, 64, 136, 520])
def test_whatever_the_number_of_tiles(
    gfx950: Runner, rng: np.random.Generator, k: int, stages: int
) -> None:
    x, w, b = (random_values(rng, size, DType.BF16) for size in ((130, k), (70, k), (70,)))
    schedule = matmul(130, 70, k, DType.BF16, bias=[70], b_transposed=True)
    out = gfx950(direct(schedule, STAGES=stages), {"arg0": x, "arg1": w, "bias": b})["buf0"]
    assert_close(out, x @ w.T + b, k, DType.BF16)


@pytest.mark.full(but=["(128, 128, 32, 256)"])
@pytest.mark.parametrize(
    "tile", [(128, 128, 32, 256), (256, 128, 64, 512), (128, 64, 64, 256)], ids=str
)
def test_tiles_of_other_shapes(
    gfx950: Runner, rng: np.random.Generator, tile: tuple[int, int, int, int]
) -> None:
    x, w = random_values(rng, (300, 200), DType.F16), random_values(rng, (150, 200), DType.F16)
    sizes = dict(zip(SMALL, tile, strict=True))
    caller = direct(matmul(300, 150, 200, DType.F16, b_transposed=True), **sizes, STAGES=3)
    assert_close(gfx950(caller, {"arg0": x, "arg1": w})["buf0"], x @ w.T, 200, DType.F16)


@pytest.mark.full
@pytest.mark.parametrize("shared", [{"SPLIT_K": 4}, {"STREAM_K": 5}], ids=str)
def test_parts_of_k_and_several_weights(
    gfx950: Runner, rng: np.random.Generator, shared: dict[str, int]
) -> None:
    columns = (40, 16, 96)
    inputs = {"x": random_values(rng, (50, 1032), DType.F16)}
    for i, n in enumerate(columns):
        inputs[f"w{i}"] = random_values(rng, (n, 1032), DType.F16)
        inputs[f"bias{i}"] = random_values(rng, (n,), DType.F16)
    caller = direct(shared_input(50, columns, 1032, DType.F16), STAGES=3, SETPRIO=1, **shared)
    out = gfx950(caller, inputs)
    for i in range(3):
        expected = inputs["x"] @ inputs[f"w{i}"].T + inputs[f"bias{i}"]
        assert_close(out[f"y{i}"], expected, 1032, DType.F16)


def test_its_own_instructions_are_right(rng: np.random.Generator) -> None:
    """Where each lane's bytes land is the hardware's, emulated: here nothing is like the source's
    emulation."""
    m, n, k = 100, 72, 328
    x, w, b = (random_values(rng, size, DType.F16) for size in ((m, k), (n, k), (n,)))
    schedule = matmul(m, n, k, DType.F16, bias=[n], b_transposed=True)
    caller = direct(schedule, STAGES=3, SETPRIO=1)
    given = {"arg0": x, "arg1": w, "bias": b}
    memory = {name: np.ascontiguousarray(each, np.float16).ravel() for name, each in given.items()}
    out = run(caller, memory, target="isa:gfx950")["buf0"].reshape(m, n)
    assert_close(out, x @ w.T + b, k, DType.F16)


LARGE = {"BLOCK_M": 256, "BLOCK_N": 128, "BLOCK_K": 64, "THREADS": 512, "STAGES": 3}


def test_some_loads_stay_on_their_way(toolchain: Toolchain, cache: CodeCache) -> None:
    """In the loop nothing is loaded into registers, waits leave the last tile's loads, and loads
    stand among the matrix instructions."""
    caller = direct(matmul(512, 512, 1024, DType.F16, b_transposed=True), **LARGE, SETPRIO=1)
    found = build(caller.kernel.source, caller.name, targets.find("gfx950"), toolchain, cache)
    assert isinstance(found, Build), found.detail
    assert all(one["vgpr_spills"] == 0 for one in found.resources.values())
    lines = (found.directory / "kernel.s").read_text().splitlines()
    loads = (256 + 128) * 64 * 2 // (512 * 16)
    waits = re.compile(r"s_waitcnt vmcnt\(([1-9])\) lgkmcnt\(0\)")
    wait = next(i for i, line in enumerate(lines) if waits.search(line))
    begin = max(i for i in range(wait) if lines[i].startswith(".LBB"))
    end = next(i for i in range(wait, len(lines)) if "s_cbranch" in lines[i])
    loop = lines[begin:end]
    names = [line.split()[0] for line in loop if line.startswith("\t") and line.split()]
    assert sum("buffer_load" in line and line.rstrip().endswith("lds") for line in loop) == loads
    assert sum(name.startswith(("buffer_load", "global_load")) for name in names) == loads
    assert not any(name.startswith("ds_write") for name in names)
    assert "s_setprio" in names
    kinds = "".join(
        "L" if name.startswith("buffer_load") else "M" if "mfma" in name else "" for name in names
    )
    assert len(re.findall("L+", kinds)) >= loads // 2, kinds


@pytest.mark.long(but=4)
@pytest.mark.full
@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize(
    "tile", [(128, 128, 32, 256), (256, 128, 32, 512), (128, 64, 64, 256)], ids=str
)
def test_a_tile_has_arrived_when_waves_meet(
    toolchain: Toolchain, cache: CodeCache, tile: tuple[int, int, int, int], stages: int
) -> None:
    """Loads arrive in order, so what a wait leaves is the latest: before a block's waves meet for
    the n-th time, each has waited for all that it loads of n tiles (the first goes through
    registers)."""
    block_m, block_n, block_k, threads = tile
    tiles = 9
    sizes = {**dict(zip(SMALL, tile, strict=True)), "STAGES": stages}
    k = tiles * block_k
    caller = direct(matmul(block_m, block_n, k, DType.F16, b_transposed=True), **sizes)
    found = build(caller.kernel.source, caller.name, targets.find("gfx950"), toolchain, cache)
    assert isinstance(found, Build), found.detail
    request = caller.benchmark_request("gfx950", {})
    launches, memory = prepare_launches(caller.kernel.launches, request, workspace_bytes=0)
    (launch,) = launches
    text = (found.directory / "kernel.s").read_text()
    program = program_of(text, f"{caller.name}_tiles", "gfx950")
    traces = emulate(program, launch, memory, values=False).traces
    each = (block_m + block_n) * block_k // (threads * 8)
    for trace in traces:
        issued, waited, met = 0, 0, []
        for index in trace.executed:
            one = program.function.instructions[index]
            issued += one.mnemonic.startswith("buffer_load") and one.operands.endswith("lds")
            if left := re.search(r"vmcnt\((\d+)\)", one.operands):
                waited = max(waited, issued - int(left[1]))
            if one.mnemonic == "s_barrier":
                met.append(waited)
        assert issued == (tiles - 1) * each
        assert len(met) == tiles
        assert all(done >= number * each for number, done in enumerate(met)), met


@pytest.mark.parametrize(
    ("schedule", "target", "said"),
    [
        (matmul(256, 256, 512, DType.F16, b_transposed=True), "gfx942", "of 16 bytes into LDS"),
        (matmul(256, 256, 512, DType.F16, b_transposed=True), "gfx1100", "of 16 bytes into LDS"),
        (matmul(256, 256, 512, DType.F16), "gfx950", "B0 is transposed while it is loaded"),
        (matmul(256, 256, 512, DType.F32, b_transposed=True), "gfx950", "elements of 4 bytes"),
        (matmul(256, 256, 508, DType.F16, b_transposed=True), "gfx950", "not 16 bytes of a row"),
    ],
    ids=["dwords alone", "none", "rows", "wide", "odd rows"],
)
def test_what_is_turned_down(schedule: Schedule, target: str, said: str) -> None:
    template = made(schedule, target)
    those = [template.reject(config) for config in template.configs() if KEY in config]
    assert len(those) == 88
    assert any(one is not None and said in one.reason for one in those)
    assert None not in those


def test_the_default_of_large_products() -> None:
    large = matmul(4096, 4096, 4096, DType.F16, b_transposed=True)
    assert made(large).default_config().items() >= {KEY: 1, "STAGES": 3, "SETPRIO": 1}.items()
    assert KEY not in made(large, "gfx942").default_config()
    assert KEY not in made(matmul(16, 4096, 4096, DType.F16, b_transposed=True)).default_config()
