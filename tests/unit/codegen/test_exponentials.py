"""Greatest elements and sums of exponentials that one loop finds, emulated, against NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from scheduler import targets
from scheduler.codegen.rocm.reduction.template import ReductionTemplate
from scheduler.codegen.template import Config
from scheduler.fusion import schedule
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import GraphInput, InputKind, Ref, SymbolInfo
from scheduler.ir.index.functions import symbol
from scheduler.lowering import lower
from tests.support.memory import from_device, to_device
from tests.unit.codegen.loopnest import run
from tests.unit.codegen.test_reduction_kernels import BF16, F16, F32, F64, TARGETS, WAVES
from tests.unit.codegen.test_shared_reductions import columns, rows
from tests.unit.lowering.graphs import graph, meta, node

SOFTMAX, LOG_SOFTMAX = "aten.softmax.int", "aten.log_softmax.int"
SAFE, LOGSUMEXP = "aten._safe_softmax.default", "aten.logsumexp.default"
C = symbol("s0")
ANY_LENGTH = {"s0": SymbolInfo("s0", 4096, 1, None)}


def alone(lanes: int, vector: int, *, keep: bool = False) -> Config:
    return {"lanes": lanes, "vector": vector, "keep": keep}


def template(
    op: str,
    size: tuple[Any, ...],
    dim: int,
    dtype: DType = F32,
    made_for: tuple[targets.Target, ...] = TARGETS,
) -> ReductionTemplate:
    """Of one op of a tensor ``x``, along one of two axes, to the same type."""
    of_rows = op == LOGSUMEXP
    made = tuple(n for d, n in enumerate(size) if d != dim) if of_rows else size
    one = node("y", op, Ref("x"), (dim,) if of_rows else dim)
    metas = {"x": meta(dtype, *size), "y": meta(dtype, *made)}
    symbols = ANY_LENGTH if C in size else None
    plan = schedule(lower(graph([GraphInput("x", InputKind.USER)], [one], metas, ("y",), symbols)))
    (only,) = plan.nodes
    return ReductionTemplate(only, plan.lowered, made_for)


def expected(op: str, x: np.ndarray, dim: int) -> np.ndarray:
    """As torch has it, in float64."""
    with np.errstate(all="ignore"):
        top = x.max(dim, keepdims=True)
        if op == LOGSUMEXP:
            top = np.where(np.isinf(top), 0, top)
            return np.log(np.exp(x - top).sum(dim)) + top.squeeze(dim)
        if op == SAFE:
            top = np.where(top == -np.inf, 0, top)
        power = np.exp(x - top)
        total = power.sum(dim, keepdims=True)
        if op == SAFE:
            total = np.where(total == 0, 1, total)
        return x - top - np.log(total) if op == LOG_SOFTMAX else power / total


def found(
    made: ReductionTemplate, config: Config, x: np.ndarray, dtype: DType, **how: Any
) -> np.ndarray:
    rejected = made.reject(config)
    assert rejected is None, rejected
    caller = made.generate(config)
    (value,) = run(caller, {"x": to_device(x, dtype).reshape(-1)}, **how).values()
    return from_device(value, dtype)


def hard_rows(length: int) -> np.ndarray:
    """Rows in which a running greatest element has what to do."""
    x = np.random.default_rng(7).standard_normal((14, length)) * 4
    x[1] = -np.inf
    x[2, :-1] = -np.inf  # the last thread has the only number
    x[3, length // 2] = np.nan
    x[4, length // 3] = np.inf
    x[5, [5, length // 2, length - 1]] = np.inf
    x[6, : length // 2] = -np.inf
    x[7] = np.linspace(-300, 300, length)  # each is greater than all before
    x[8] = x[7, ::-1]
    x[9] = -7.25
    x[10, 0] = 60000.0
    x[11, -1] = 60000.0
    x[12, 7], x[12, 9] = np.inf, -np.inf
    x[13, :9], x[13, 12] = -np.inf, np.nan
    return x


WAYS = [alone(64, 1), alone(1024, 4), rows(2, 4), columns(8, 2), columns(16, 1, 4)]


@pytest.mark.long(but=3)
@pytest.mark.full(but=10)
@pytest.mark.parametrize("config", WAYS, ids=str)
@pytest.mark.parametrize("op", [SOFTMAX, LOGSUMEXP])
def test_rows_with_what_is_no_number(op: str, config: Config) -> None:
    """NaN, infinities of either sign, alone and together, at both ends, in order."""
    compare_hard_rows(op, config, WAVES)


@pytest.mark.parametrize("op", [LOG_SOFTMAX, SAFE])
def test_the_relatives_of_softmax(op: str) -> None:
    compare_hard_rows(op, rows(2, 4), WAVES[:1])


def compare_hard_rows(op: str, config: Config, emulations: Sequence[str]) -> None:
    length, dim = 9000, 0 if "columns" in config else 1
    x = hard_rows(length).astype(np.float32).astype(np.float64)
    given = np.ascontiguousarray(x.T) if dim == 0 else x
    made = template(op, given.shape, dim)
    assert "kiln/exponentials.h" in made.generate(config).kernel.source
    want = expected(op, given, dim).reshape(-1)
    for target in emulations:
        got = found(made, config, given, F32, target=target)
        assert np.allclose(got, want, rtol=2e-5, atol=1e-12, equal_nan=True), target


@pytest.mark.full
@pytest.mark.parametrize(
    ("dtype", "vector", "rtol"), [(F16, 8, 2**-10), (BF16, 8, 2**-8), (F64, 2, 1e-12)], ids=str
)
def test_every_type(dtype: DType, vector: int, rtol: float) -> None:
    """The exponential is fast where the result is short."""
    x = from_device(
        to_device(np.random.default_rng(8).standard_normal((3, 20_000)) * 6, dtype), dtype
    )
    for op in (LOG_SOFTMAX, LOGSUMEXP):
        made, want = template(op, x.shape, 1, dtype), expected(op, x, 1).reshape(-1)
        for config in (alone(256, vector), rows(2, vector)):
            source = made.generate(config).kernel.source
            assert ("Exponentials<float, true>" in source) == (dtype in (F16, BF16))
            assert np.allclose(found(made, config, x, dtype), want, rtol=rtol), (op, config)


def test_a_long_row_is_read_once_before_it_is_written() -> None:
    """Two launches where there were three, of columns three where there were five."""
    for size, dim, config, launches in (
        ((2, 20_000), 1, rows(4, 4), 2),
        ((20_000, 2), 0, columns(32, 1, 8), 3),
        ((2_000, 8), 0, columns(32, 4), 1),
    ):
        kernel = template(SOFTMAX, size, dim).generate(config).kernel
        assert len(kernel.launches) == launches
        assert kernel.source.count("for (index_t rindex") == 2


def test_a_loss_reads_its_scores_once() -> None:
    """Cross entropy over a vocabulary."""
    number, classes = 512, 128_256
    one = node("y", "aten.cross_entropy_loss.default", Ref("x"), Ref("t"))
    inputs = [GraphInput(name, InputKind.USER) for name in "xt"]
    metas = {"x": meta(F16, number, classes), "t": meta(DType.I64, number), "y": meta(F16)}
    plan = schedule(lower(graph(inputs, [one], metas, ("y",))))
    made = ReductionTemplate(plan.nodes[0], plan.lowered, TARGETS)
    source = made.generate(made.default_config()).kernel.source
    assert "Exponentials<float>" in source
    assert source.count("for (index_t rindex") == 1


@pytest.mark.full
def test_registers_keep_two_loops() -> None:
    """What is in registers is gone through twice; a kernel that looks at the size has both ways."""
    kept = template(SOFTMAX, (512, 4096), 1).generate(alone(256, 4, keep=True)).kernel.source
    assert "Exponentials" not in kept
    made = template(SOFTMAX, (512, C), 1)
    config = alone(128, 4, keep=True)
    source = made.generate(config).kernel.source
    assert source.index("rnumel <= kLanes * kVector * kSteps") < source.index("Exponentials")
    assert "kiln::Max<float>()" in source
    for length in (9, 4096, 4099, 12_288):
        x = np.random.default_rng(length).standard_normal((512, length)) * 5
        x = x.astype(np.float32).astype(np.float64)[:512]
        got = found(made, config, x, F32, bindings={"s0": length})
        assert np.allclose(got, expected(SOFTMAX, x, 1).reshape(-1), rtol=2e-5, atol=1e-12), length


@pytest.mark.full(but=["isa:gfx942"])
@pytest.mark.parametrize("target", ["isa:gfx942", "isa:gfx1100"])
def test_the_instructions_do_it(target: str) -> None:
    for config, length in ((alone(256, 4), 4100), (rows(2, 4), 8199)):
        x = hard_rows(length)[2:9].astype(np.float16).astype(np.float64)
        got = found(template(SOFTMAX, x.shape, 1, F16), config, x, F16, target=target)
        want = expected(SOFTMAX, x, 1).reshape(-1)
        assert np.allclose(got, want, rtol=2**-9, atol=2**-13, equal_nan=True), config


def test_rows_that_a_cache_holds_have_a_block_each() -> None:
    """Where most compute units have one: a further launch would read them from memory again."""
    mi300 = (targets.find("gfx942"),)
    for count, shared in ((256, False), (64, True)):
        config = template(SOFTMAX, (count, 131072), 1, F32, mi300).default_config()
        assert ("split" in config) == shared, count
    read_once = template(LOGSUMEXP, (256, 131072), 1, F32, mi300).default_config()
    assert "split" in read_once
