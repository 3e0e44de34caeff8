"""What matrix kernels compute, on CPU emulation, against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.build.cache import CodeCache
from scheduler.build.model import Toolchain
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.rocm.scheduling import ROCmCPPScheduling
from scheduler.fusion.nodes import Schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import SymbolInfo
from scheduler.ir.index.functions import symbol
from scheduler.targets import find, names
from tests.unit.matrix.contractions import (
    gathered_gelu,
    matmul,
    rows_before,
    shared_input,
    split_heads,
)
from tests.unit.matrix.running import Runner, random_values, tolerance

ALL = tuple(find(name) for name in names())


def default(schedule: Schedule, **config: int) -> TemplateCaller:
    """The default candidate, or its tiles with some of their constants exchanged."""
    backend = ROCmCPPScheduling(schedule, ALL)
    (node,) = schedule.nodes
    template = backend.template(node)
    chosen = dict(template.default_config())
    if config:
        chosen.pop("GEMV", None)
    return template.generate({**chosen, **config})


def assert_close(actual: np.ndarray, expected: np.ndarray, k: int, dtype: DType) -> None:
    assert actual.shape == expected.shape
    if expected.size:
        error = np.abs(actual - expected).max()
        # The largest of k products of two normal values, and an epilogue of the same size.
        assert error <= tolerance(k, dtype, magnitude=4.0), f"error {error}"


EMULATED = ("cpu", "cpu-gfx90a", "cpu-gfx1030", "cpu-gfx1100", "cpu-gfx1201")


@pytest.mark.long(but=3)
@pytest.mark.full(but=["cpu-f16"])
@pytest.mark.parametrize(
    ("target", "dtype"),
    [
        *((target, dtype) for target in EMULATED for dtype in (DType.F16, DType.BF16)),
        ("cpu", DType.F32),
        ("cpu-gfx1100", DType.F32),
        ("cpu-gfx1151", DType.F16),
        ("cpu", DType.F64),
        ("cpu-gfx90a", DType.F64),
        ("cpu-gfx950", DType.F64),
        ("cpu-gfx1201", DType.F64),
    ],
    ids=lambda value: value if isinstance(value, str) else value.label,
)
def test_each_kind_of_matrix_instruction_is_right(
    cache: CodeCache,
    toolchain: Toolchain,
    rng: np.random.Generator,
    target: str,
    dtype: DType,
) -> None:
    x, w, b = (random_values(rng, size, dtype) for size in ((70, 72), (100, 72), (100,)))
    caller = default(matmul(70, 100, 72, dtype, bias=[100], b_transposed=True))
    out = Runner(cache, toolchain, target)(caller, {"arg0": x, "arg1": w, "bias": b})
    assert_close(out["buf0"], x @ w.T + b, 72, dtype)


def test_a_product_of_a_buffer_with_itself_takes_it_once(
    runner: Runner, rng: np.random.Generator
) -> None:
    x = random_values(rng, (64, 64), DType.F16)
    caller = default(matmul(64, 64, 64, DType.F16, same=True))
    assert [arg.name for arg in caller.kernel.args if arg.type == "ptr"] == ["X", "Y"]
    assert_close(runner(caller, {"arg0": x})["buf0"], x @ x, 64, DType.F16)


@pytest.mark.full(but=["[33, 80]"])
@pytest.mark.parametrize("bias", [[33, 80], [80], [33, 1]], ids=str)
def test_a_bias_of_any_broadcast(runner: Runner, rng: np.random.Generator, bias: list[int]) -> None:
    x, w, b = (random_values(rng, size, DType.F16) for size in ((33, 48), (80, 48), tuple(bias)))
    caller = default(matmul(33, 80, 48, DType.F16, bias=bias, b_transposed=True))
    out = runner(caller, {"arg0": x, "arg1": w, "bias": b})
    assert_close(out["buf0"], x @ w.T + b, 48, DType.F16)


def test_batches_of_a_transposed_operand(runner: Runner, rng: np.random.Generator) -> None:
    x, w = (random_values(rng, size, DType.BF16) for size in ((3, 37, 64), (3, 45, 64)))
    caller = default(matmul(37, 45, 64, DType.BF16, batch=3, b_transposed=True))
    out = runner(caller, {"arg0": x, "arg1": w})
    assert_close(out["buf0"], x @ w.transpose(0, 2, 1), 64, DType.BF16)


def test_gathered_rows_are_held_on_their_axis(runner: Runner, rng: np.random.Generator) -> None:
    """A position read from memory may be 0, and is no size: what holds the row before it on the
    axis must stay when k is split into heads."""
    heads, rows, m, n = 3, 9, 20, 24
    x, w = (random_values(rng, size, DType.F16) for size in ((heads, rows, 64), (n, heads * 64)))
    ids = rng.integers(0, rows, m)
    ids[:2] = 0
    caller = default(rows_before(m, n, heads, rows, DType.F16))
    out = runner(caller, {"x": x, "w": w, "ids": ids})
    before = x[:, np.maximum(ids - 1, 0)].transpose(1, 0, 2).reshape(m, heads * 64)
    assert_close(out["y"], before @ w.T, heads * 64, DType.F16)


def test_rows_that_do_not_lie_together(runner: Runner, rng: np.random.Generator) -> None:
    """A of stride (1, 504): contiguous along m."""
    x, w = (random_values(rng, size, DType.F16) for size in ((40, 70), (70, 24)))
    caller = default(matmul(40, 24, 70, DType.F16, a_stride=(1, 504)))
    assert caller.kernel.config["VECTOR_A"] == 8
    assert_close(runner(caller, {"arg0": x, "arg1": w})["buf0"], x @ w, 70, DType.F16)


@pytest.mark.full(but=["0-5-7"])
@pytest.mark.parametrize(("m", "n", "k"), [(0, 5, 7), (5, 0, 7), (5, 6, 0)])
def test_empty_sizes(runner: Runner, rng: np.random.Generator, m: int, n: int, k: int) -> None:
    """M = 0 and N = 0 launch nothing; K = 0 stores the epilogue of 0 (A and B may be null)."""
    x, w, b = (random_values(rng, size, DType.F16) for size in ((m, k), (k, n), (n,)))
    caller = default(matmul(m, n, k, DType.F16, bias=[n], relu=True))
    out = runner(caller, {"arg0": x, "arg1": w, "bias": b})
    np.testing.assert_array_equal(out["buf0"], np.maximum(np.zeros((m, n)) + b, 0))


@pytest.mark.full(but=["2-1"])
@pytest.mark.parametrize("stages", [1, 2])
@pytest.mark.parametrize("split_k", [2, 8])
def test_split_k_adds_parts_before_the_epilogue(
    runner: Runner, rng: np.random.Generator, split_k: int, stages: int
) -> None:
    sizes = ((40, 520), (520, 48), (48,))
    x, w, b = (random_values(rng, size, DType.F16) for size in sizes)
    schedule = matmul(40, 48, 520, DType.F16, bias=[48], relu=True)
    caller = default(schedule, SPLIT_K=split_k, STAGES=stages)
    out = runner(caller, {"arg0": x, "arg1": w, "bias": b})
    assert_close(out["buf0"], np.maximum(x @ w + b, 0), 520, DType.F16)
    assert len(caller.kernel.launches) == 2


@pytest.mark.full(but=2)
@pytest.mark.parametrize("split_k", [1, 2])
def test_several_weights_of_one_input(
    runner: Runner, rng: np.random.Generator, split_k: int
) -> None:
    columns = (40, 16, 96)
    x = random_values(rng, (50, 64), DType.F16)
    weights = [random_values(rng, (n, 64), DType.F16) for n in columns]
    biases = [random_values(rng, (n,), DType.F16) for n in columns]
    inputs = {"x": x}
    for i in range(3):
        inputs |= {f"w{i}": weights[i], f"bias{i}": biases[i]}
    caller = default(shared_input(50, columns, 64, DType.F16), SPLIT_K=split_k, BLOCK_N=32)
    out = runner(caller, inputs)
    for i in range(3):
        assert_close(out[f"y{i}"], x @ weights[i].T + biases[i], 64, DType.F16)


def test_one_kernel_serves_every_size_of_a_symbol(runner: Runner, rng: np.random.Generator) -> None:
    symbols = {"s0": SymbolInfo("s0", 2240, 1, None)}
    caller = default(matmul(symbol("s0"), 64, 32, DType.F16, bias=[64], symbols=symbols))
    w, b = random_values(rng, (32, 64), DType.F16), random_values(rng, (64,), DType.F16)
    for size in (1, 37, 130):
        x = random_values(rng, (size, 32), DType.F16)
        out = runner(caller, {"arg0": x, "arg1": w, "bias": b}, {"s0": size})
        assert_close(out["buf0"], x @ w + b, 32, DType.F16)


def test_a_prologue_and_an_epilogue_that_reads_through_an_index(
    runner: Runner, rng: np.random.Generator
) -> None:
    """A negative index counts from the end; one beyond it is clamped rather than followed."""
    dtype = DType.F16
    x, w = random_values(rng, (37, 48), dtype), random_values(rng, (40, 48), dtype)
    scale, residual = random_values(rng, (5, 40), dtype), random_values(rng, (37, 40), dtype)
    ids = rng.integers(-5, 5, 37)
    ids[3] = 10**6
    inputs = {"x": x, "w": w, "scale": scale, "residual": residual, "ids": ids}
    out = runner(default(gathered_gelu(37, 40, 48, 5, dtype)), inputs)
    a = np.tanh(x).astype(np.float16).astype(np.float64)
    expected = (a @ w.T) * scale[np.clip(np.where(ids < 0, ids + 5, ids), 0, 4)] + residual
    assert_close(out["y"], expected, 48, dtype)


def test_an_index_that_divides_an_axis_keeps_its_wide_loads(
    runner: Runner, rng: np.random.Generator
) -> None:
    """Attention's output: rows are (batch, sequence), k is (head, depth)."""
    x = random_values(rng, (2, 3, 19, 64), DType.F16)
    w = random_values(rng, (40, 192), DType.F16)
    caller = default(split_heads(2, 19, 3, 40, DType.F16))
    assert caller.kernel.config["VECTOR_A"] == caller.kernel.config["VECTOR_B"] == 8
    expected = x.transpose(0, 2, 1, 3).reshape(38, 192) @ w.T
    assert_close(runner(caller, {"x": x, "w": w})["y"], expected, 192, DType.F16)


@pytest.mark.full
@settings(max_examples=8, deadline=None, derandomize=True)
@given(
    sizes=st.tuples(*[st.integers(1, 10).map(lambda i: 8 * i) | st.integers(1, 90)] * 3),
    batch=st.sampled_from([None, 3]),
    b_transposed=st.booleans(),
    a_transposed=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_any_sizes_and_layouts(
    runner: Runner,
    sizes: tuple[int, int, int],
    batch: int | None,
    b_transposed: bool,
    a_transposed: bool,
    seed: int,
) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(seed)
    lead = () if batch is None else (batch,)
    x = random_values(rng, (*lead, m, k), DType.F16)
    w = random_values(rng, (*lead, n, k) if b_transposed else (*lead, k, n), DType.F16)
    stride = (*([] if batch is None else [m * k]), *((1, m) if a_transposed else (k, 1)))
    schedule = matmul(m, n, k, DType.F16, batch=batch, a_stride=stride, b_transposed=b_transposed)
    caller = default(schedule, BLOCK_M=32, BLOCK_N=32, BLOCK_K=64, THREADS=128, STAGES=1)
    out = runner(caller, {"arg0": x, "arg1": w})
    expected = x @ (np.swapaxes(w, -1, -2) if b_transposed else w)
    assert_close(out["buf0"], expected, k, DType.F16)
