"""Products of few rows, which waves sum by vector instructions."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler import targets
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.model import Build, Toolchain
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.codegen.template import KernelTemplate
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from tests.unit.matrix.contractions import convolution, matmul, shared_input
from tests.unit.matrix.running import Runner, random_values, tolerance

KEY = "GEMV"
TYPES = pytest.mark.parametrize(
    "dtype", [DType.F16, DType.BF16, DType.F32], ids=lambda dtype: dtype.label
)
LINEAR = matmul(1, 14336, 4096, DType.F16, b_transposed=True, bias=[14336])


def made(schedule: Schedule, *names: str) -> KernelTemplate:
    (node,) = schedule.nodes
    return ROCmCPPScheduling(schedule, tuple(map(targets.find, names))).template(node)


def callers(schedule: Schedule, target: str) -> list[TemplateCaller]:
    """All that serve."""
    template = made(schedule, target)
    found = [config for config in template.configs() if KEY in config]
    return [template.generate(config) for config in found if template.reject(config) is None]


@pytest.fixture(scope="module")
def narrow(cache: CodeCache, toolchain: Toolchain) -> Runner:
    """Waves of 32 lanes."""
    return Runner(cache, toolchain, "cpu-gfx1100")


@pytest.mark.long(but=4)
@pytest.mark.full
@TYPES
@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_every_candidate_computes_it(
    runner: Runner, narrow: Runner, rng: np.random.Generator, rows: int, dtype: DType
) -> None:
    """Columns and k that end within a block's, and rows that no tile has exactly."""
    n, k = 77, 2056
    x, w, b = (random_values(rng, size, dtype) for size in ((rows, k), (n, k), (n,)))
    schedule = matmul(rows, n, k, dtype, bias=[n], b_transposed=True, relu=True)
    for run, target in ((runner, "cpu"), (narrow, "cpu-gfx1100")):
        found = callers(schedule, target)
        assert len(found) >= 2
        for caller in found:
            out = run(caller, {"arg0": x, "arg1": w, "bias": b})["buf0"]
            error = np.abs(out - np.maximum(x @ w.T + b, 0)).max()
            assert error <= tolerance(k, dtype, magnitude=4.0), caller.description


@pytest.mark.full
@settings(max_examples=10, deadline=None, derandomize=True)
@given(
    rows=st.integers(1, 4),
    columns=st.integers(1, 70),
    k=st.integers(32, 137).map(lambda i: 8 * i) | st.integers(256, 1100),
    batch=st.sampled_from([None, 3]),
    seed=st.integers(0, 2**16),
)
def test_any_sizes(
    runner: Runner, rows: int, columns: int, k: int, batch: int | None, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    lead = () if batch is None else (batch,)
    x = random_values(rng, (*lead, rows, k), DType.F16)
    w = random_values(rng, (*lead, columns, k), DType.F16)
    schedule = matmul(rows, columns, k, DType.F16, batch=batch, b_transposed=True)
    out = runner(callers(schedule, "cpu")[0], {"arg0": x, "arg1": w})["buf0"]
    error = np.abs(out - x @ np.swapaxes(w, -1, -2)).max(initial=0.0)
    assert error <= tolerance(max(k, 1), DType.F16, magnitude=4.0)


def test_several_weights_of_one_row(runner: Runner, rng: np.random.Generator) -> None:
    """Queries, keys and values of one token, some with fewer columns than a block."""
    sizes = (40, 24, 3)
    x = random_values(rng, (1, 512), DType.F16)
    weights = [random_values(rng, (n, 512), DType.F16) for n in sizes]
    shifts = [random_values(rng, (n,), DType.F16) for n in sizes]
    (first, *_) = callers(shared_input(1, sizes, 512, DType.F16), "cpu")
    inputs = {"x": x}
    for i, (weight, shift) in enumerate(zip(weights, shifts, strict=True)):
        inputs |= {f"w{i}": weight, f"bias{i}": shift}
    out = runner(first, inputs)
    for i, (weight, shift) in enumerate(zip(weights, shifts, strict=True)):
        error = np.abs(out[f"y{i}"] - (x @ weight.T + shift)).max()
        assert error <= tolerance(512, DType.F16, magnitude=4.0)


@pytest.mark.full
def test_a_window_with_padding(runner: Runner, rng: np.random.Generator) -> None:
    """A convolution of so few pixels: k has three axes, and what lies outside is 0."""
    x, w = (random_values(rng, size, DType.F16) for size in ((1, 64, 2, 2), (24, 64, 3, 3)))
    schedule = convolution(x.shape, w.shape, DType.F16, padding=1, channels_last=True)
    found = callers(schedule, "cpu")
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    expected = sum(
        np.einsum("bchw,oc->bohw", padded[:, :, i : i + 2, j : j + 2], w[:, :, i, j])
        for i in range(3)
        for j in range(3)
    )
    assert found
    for caller in found:
        error = np.abs(runner(caller, {"x": x, "w": w})["y"] - expected).max()
        assert error <= tolerance(576, DType.F16, magnitude=4.0)


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1201"])
def test_the_default_of_few_rows(target: str) -> None:
    for rows in (1, 2, 4):
        schedule = matmul(rows, 14336, 4096, DType.F16, b_transposed=True)
        assert KEY in made(schedule, target).default_config()
    assert (
        KEY not in made(matmul(5, 4096, 4096, DType.F16, b_transposed=True), target).configs()[-1]
    )
    row_major = made(matmul(1, 14336, 4096, DType.F16), target)
    assert not any(KEY in config for config in row_major.configs()), "B does not lie along k"


def test_what_was_measured_stays_the_default_of_cuda() -> None:
    """Its tiles of few rows, copied asynchronously, are faster than torch.compile's kernels."""
    assert KEY not in made(LINEAR, "sm_90").default_config()


@pytest.mark.parametrize(
    ("schedule", "config", "said"),
    [
        (
            matmul(1, 64, 512, DType.F64, b_transposed=True),
            {},
            "GEMV with elements of type f64 is not supported",
        ),
        (matmul(4, 64, 36, DType.F16, b_transposed=True), {}, "would be beyond k=36"),
        (LINEAR, {"VECTOR_A": 4}, "GEMV needs both operands contiguous along k"),
        (LINEAR, {"BLOCK_N": 10}, "10 columns cannot be divided among 4 waves"),
        (LINEAR, {"BLOCK_K": 768}, "BLOCK_K 768 is not a multiple of the 512 elements"),
        (LINEAR, {"BLOCK_N": 64, "BLOCK_K": 2048}, "registers per lane"),
    ],
)
def test_what_does_not_serve_says_why(
    schedule: Schedule, config: dict[str, int], said: str
) -> None:
    template = made(schedule, "gfx942")
    first = next(one for one in template.configs() if KEY in one)
    rejected = template.reject({**first, **config})
    assert rejected is not None
    assert said in rejected.reason


@pytest.mark.full(but=["gfx90a"])
@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1201"])
def test_its_instructions(target: str, cache: CodeCache, toolchain: Toolchain) -> None:
    """Wide loads and stores, no LDS and no matrix instruction; sums of 16 lanes by DPP."""
    template = made(LINEAR, target)
    caller = template.generate(template.default_config())
    result = build(caller.kernel.source, caller.name, targets.find(target), toolchain, cache)
    assert isinstance(result, Build), f"{result.reason}\n{result.detail}"
    text = (result.directory / "kernel.s").read_text()
    assert all(one["lds_bytes"] == 0 for one in result.resources.values())
    assert all(one["vgpr_spills"] == 0 for one in result.resources.values())
    assert re.search(r"\bbuffer_load_(dwordx4|b128)\b", text)
    assert re.search(r"\b(global|flat|buffer)_store_(dwordx2|b64)\b", text)
    assert not re.search(r"\bds_(read|load|write|store)|\bv_(mfma|wmma|smfmac)", text)
    for control in (
        r"quad_perm:\[1,0,3,2\]",
        r"quad_perm:\[2,3,0,1\]",
        "row_half_mirror",
        "row_mirror",
    ):
        assert re.search(control, text), control
