"""Reductions whose rows several blocks share, and columns, on CPU emulation against NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from scheduler import targets
from scheduler.build.compile import build
from scheduler.build.cuda.toolchains import NAME, cuda_compilers
from scheduler.build.model import Build
from scheduler.build.toolchains import Search
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.rocm.reduction.template import ReductionTemplate
from scheduler.codegen.template import Config
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import SymbolInfo
from scheduler.ir.index.functions import symbol
from scheduler.ir.operations import GroupKind, Pointwise, Reduction, ReductionKind, Store
from scheduler.ir.values import Accumulator, Call, Cast, Load, Value
from tests.support.caches import KEPT
from tests.support.memory import from_device, to_device
from tests.unit.codegen.loopnest import at, axes, buffer, compiled, group, ints, random_memory, run
from tests.unit.codegen.test_reduction_kernels import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    I64,
    KINDS,
    TARGETS,
    WAVES,
    layer_norm,
    reduction,
)
from tests.unit.codegen.test_shared_scans import scan

R, C = symbol("s0"), symbol("s1")
SYMBOLS = (SymbolInfo("s0", 3, 1, 4096), SymbolInfo("s1", 1 << 20, 0, 1 << 24))


def rows(split: int, vector: int = 1) -> Config:
    return {"lanes": 256, "vector": vector, "keep": False, "split": split}


def columns(lanes: int, width: int, split: int = 1) -> Config:
    config: dict[str, int | bool] = {"lanes": lanes, "vector": 1, "keep": False, "columns": width}
    return config | ({"split": split} if split > 1 else {})


def whole(
    kinds: Sequence[ReductionKind],
    size: Sequence[object],
    inner_axes: Sequence[int],
    dtype: DType,
    symbols: tuple[SymbolInfo, ...] = (),
    made_for: tuple[targets.Target, ...] = TARGETS,
) -> ReductionTemplate:
    """One tensor reduced along some of its axes, to a buffer of each kind's name."""
    walked = axes(*size)
    outer = tuple(a for d, a in enumerate(walked) if d not in inner_axes)
    inner = tuple(a for d, a in enumerate(walked) if d in inner_axes)
    kept = [one for d, one in enumerate(size) if d not in inner_axes]
    held = dtype.compute_dtype
    load = Load("x", at(walked), dtype)
    value: Value = load if held is dtype else Cast(load, held)
    buffers, members = [buffer("x", dtype, size)], []
    for kind in kinds:
        result = I64 if kind in (ReductionKind.ARGMAX, ReductionKind.ARGMIN) else held
        buffers.append(buffer(str(kind), result, kept))
        store = Store(str(kind), at(outer), Accumulator(result))
        members.append(Reduction(f"op_{kind}", outer, inner, kind, value, result, store, ()))
    node, lowered = group(GroupKind.REDUCTION, members, buffers, symbols)
    return ReductionTemplate(node, lowered, made_for)


FLOATS = tuple(k for k in KINDS if k not in (ReductionKind.ANY, ReductionKind.ALL))


@pytest.mark.full(but=3)
@pytest.mark.parametrize("config", [rows(4), columns(4, 1), columns(64, 1, 2)], ids=str)
def test_every_kind_of_reduction(config: Config) -> None:
    """All in one kernel over a length that nothing divides, with NaN, ties and infinities."""
    length = 5003
    values = np.random.default_rng(3).standard_normal((5, length)).astype(np.float32)
    values[:, :4900] *= 0.5
    values[0, 10] = values[0, 4000] = np.nan
    values[1, 30:4500:7] = 9.0  # equals: the first wins
    values[2] = -np.inf
    by_columns = "columns" in config
    size, inner = ((length, 5), (0,)) if by_columns else ((5, length), (1,))
    made = whole(FLOATS, size, inner, F32)
    memory = {"x": np.ascontiguousarray(values.T if by_columns else values)}
    for target in WAVES:
        found = run(made.generate(config), memory, target=target)
        for kind in FLOATS:
            with np.errstate(all="ignore"):
                want = KINDS[kind](values.astype(np.float64), axis=1)
            close = np.allclose(found[str(kind)], want, rtol=1e-5, atol=1e-4, equal_nan=True)
            assert close, (kind, target)


@pytest.mark.parametrize("kind", [ReductionKind.ANY, ReductionKind.ALL])
def test_flags(kind: ReductionKind) -> None:
    values = np.zeros((3, 4099), bool) if kind is ReductionKind.ANY else np.ones((3, 4099), bool)
    values[1, 4098] ^= True
    made = whole([kind], (3, 4099), (1,), BOOL)
    found = run(made.generate(rows(4)), {"x": values})[str(kind)]
    assert (found == KINDS[kind](values, axis=1)).all()


@pytest.mark.full
@pytest.mark.parametrize(
    ("dtype", "vector"), [(F16, 8), (BF16, 4), (F64, 2), (I64, 2), (DType.C64, 2)], ids=str
)
def test_sums_in_packs(dtype: DType, vector: int) -> None:
    """Of rows and of columns, in each type, with parts that do not come out even."""
    rng = np.random.default_rng(5)
    for size, inner, config in (
        ((2, 24 * 1024), (1,), rows(2, vector)),
        ((700, 264), (0,), columns(4, vector, 8)),
        ((3, 100, 264), (1,), columns(8, vector)),
    ):
        made = whole([ReductionKind.SUM], size, inner, dtype)
        assert made.reject(config) is None, (config, made.reject(config))
        x = rng.standard_normal(size) * 4
        x = x + 1j * rng.standard_normal(size) if dtype.is_complex else x
        memory = {"x": to_device(x, dtype).reshape(-1)}
        want = from_device(memory["x"], dtype).reshape(size).sum(inner).reshape(-1)
        for target in WAVES if dtype is F16 else WAVES[:1]:
            found = run(made.generate(config), memory, target=target)["sum"]
            found = from_device(found, dtype.compute_dtype)
            assert np.allclose(found, want, rtol=1e-4, atol=1e-3), (size, config, target)


def test_sizes_that_are_not_known() -> None:
    """Any length is right, with fewer steps than blocks, and none at all."""
    made = whole([ReductionKind.SUM, ReductionKind.ARGMAX], (R, C), (1,), F32, SYMBOLS)
    config = made.default_config()
    assert int(config["split"]) > 1
    caller = made.generate(config)
    rng = np.random.default_rng(6)
    for count, length in ((1, 1), (3, 5), (2, 300_001), (1, 65_536)):
        x = rng.standard_normal((count, length)).astype(np.float32)
        found = run(caller, {"x": x}, {"s0": count, "s1": length})
        assert np.allclose(found["sum"], x.astype(np.float64).sum(1), atol=2e-3)
        assert (found["argmax"] == x.argmax(1)).all()
    nothing = run(caller, {"x": np.zeros(0, np.float32)}, {"s0": 4, "s1": 0})
    assert (nothing["sum"] == 0).all()


def test_columns_of_sizes_that_are_not_known() -> None:
    made = whole([ReductionKind.MAX], (C, R), (0,), F16, SYMBOLS)
    caller = made.generate(columns(8, 1, 4))
    rng = np.random.default_rng(7)
    for count, length in ((1, 1), (37, 1), (1000, 70), (5, 4099)):
        x = rng.standard_normal((length, count)).astype(np.float16)
        found = run(caller, {"x": x}, {"s0": count, "s1": length})["max"]
        assert (found == x.max(0)).all()


@pytest.mark.full(but=2)
@pytest.mark.parametrize("config", [rows(4, 2), rows(2, 4)], ids=str)
def test_a_norm_of_few_long_rows(config: Config) -> None:
    """Mean and squares about it in one loop, whose results the next launch begins with."""
    length = 6 * 1024 * 4
    members, buffers = layer_norm(2, length)
    made = reduction(members, buffers)
    assert made.reject(config) is None
    rng = np.random.default_rng(8)
    memory = {b.name: random_memory(rng, b, {}) for b in buffers}
    x = from_device(memory["x"], F16).reshape(2, length)
    rstd = 1 / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    want = (x - x.mean(1, keepdims=True)) * rstd * memory["w"]
    caller = made.generate(config)
    assert len(caller.kernel.launches) == 2
    for target in WAVES:
        found = run(caller, memory, target=target)
        assert np.allclose(found["mean"], x.mean(1), atol=1e-5), target
        assert np.allclose(found["rstd"], rstd[:, 0], rtol=1e-4), target
        y = from_device(found["y"], BF16).reshape(2, length)
        assert np.allclose(y, want, rtol=2**-7, atol=1e-4), target


def norm_of_columns(length: int, count: object) -> tuple[list, list]:
    """``layer_norm`` with its rows as columns in memory."""
    members, buffers = layer_norm(count, length)
    turned = {"x": (1, count), "y": (1, count)}
    placed = [
        replace(one, stride=ints(*turned[one.name])) if one.name in turned else one
        for one in buffers
    ]
    return members, placed


@pytest.mark.full(but=2)
@pytest.mark.parametrize("config", [columns(4, 8), columns(8, 4, 4)], ids=str)
def test_a_norm_of_columns(config: Config) -> None:
    length, count = 333, 136
    made = reduction(*norm_of_columns(length, count))
    assert made.reject(config) is None
    rng = np.random.default_rng(9)
    memory = {b.name: random_memory(rng, b, {}) for b in norm_of_columns(length, count)[1]}
    x = from_device(memory["x"], F16).reshape(length, count)
    rstd = 1 / np.sqrt(x.var(0) + 1e-5)
    want = (x - x.mean(0)) * rstd * memory["w"][:, None]
    for target in WAVES:
        found = run(made.generate(config), memory, target=target)
        assert np.allclose(found["mean"], x.mean(0), atol=1e-5), target
        assert np.allclose(found["rstd"], rstd, rtol=1e-4), target
        y = from_device(found["y"], BF16).reshape(length, count)
        assert np.allclose(y, want, rtol=2**-7, atol=1e-4), target


def softmax(size: tuple[int, int], dim: int) -> ReductionTemplate:
    walked = axes(*size)
    outer, inner = walked[1 - dim : 2 - dim], walked[dim : dim + 1]
    x, places = Load("x", at(walked), F32), at(outer)
    power = Call("exp", (Call("sub", (x, Load("top", places, F32)), F32),), F32)
    share = Call("truediv", (power, Load("total", places, F32)), F32)
    result = Accumulator(F32)
    kept = size[1 - dim]
    members = [
        Reduction("op0", outer, inner, ReductionKind.MAX, x, F32, Store("top", places, result), ()),
        Reduction(
            "op1", outer, inner, ReductionKind.SUM, power, F32, Store("total", places, result), ()
        ),
        Pointwise("op2", (*outer, *inner), Store("y", at(walked), share), ()),
    ]
    rows = [buffer(name, F32, (kept,)) for name in ("top", "total")]
    buffers = [buffer("x", F32, size), *rows, buffer("y", F32, size)]
    return reduction(members, buffers, needed=("y",))


@pytest.mark.full(but=3)
@pytest.mark.parametrize(
    ("size", "dim", "config", "launches"),
    [
        ((2, 20_000), 1, rows(4, 4), 2),
        ((20_000, 2), 0, columns(32, 1, 8), 3),
        ((2_000, 8), 0, columns(32, 4), 1),
    ],
)
def test_a_softmax_of_long_rows(
    size: tuple[int, int], dim: int, config: Config, launches: int
) -> None:
    """A loop that finds greatest element and sum, and one that stores."""
    made = softmax(size, dim)
    assert made.reject(config) is None
    caller = made.generate(config)
    assert len(caller.kernel.launches) == launches
    x = np.random.default_rng(10).standard_normal(size).astype(np.float32)
    power = np.exp(x.astype(np.float64) - x.max(dim, keepdims=True))
    want = power / power.sum(dim, keepdims=True)
    for target in WAVES:
        found = run(caller, {"x": x}, target=target)["y"].reshape(size)
        assert np.allclose(found, want, rtol=1e-4, atol=1e-9), target


def test_a_variance_loses_no_more_than_two_loops() -> None:
    """Far from zero, with a first element far from all others, with nothing in most parts; what is
    no number makes none."""
    length = 6 * 1024 * 4
    x = np.random.default_rng(11).standard_normal((5, length)) / 8
    x[0] += 1000
    x[1, 0] = 3e4
    x[2] = 7.25
    x[3, 9], x[4, 9] = np.nan, np.inf
    members, buffers = layer_norm(5, length)
    made = reduction(members, buffers)
    x = x.astype(np.float16)
    memory = {"x": x.reshape(-1), "w": np.ones(length, np.float32)}
    found = run(made.generate(rows(2, 4)), memory)["rstd"]
    want = 1 / np.sqrt(x[:3].astype(np.float64).var(1) + 1e-5)
    assert np.allclose(found[:3], want, rtol=1e-4)
    assert np.isnan(found[3:]).all()


@pytest.mark.parametrize("target", ["isa:gfx942", "isa:gfx1100"])
def test_the_instructions_do_it(target: str) -> None:
    """Code objects: NaN, ties, an uneven length, a sum of columns in packs."""
    values = np.random.default_rng(3).standard_normal((2, 4099)).astype(np.float32)
    values[0, 4000] = np.nan
    values[1, 30:4000:7] = 9.0
    made = whole([ReductionKind.SUM, ReductionKind.ARGMAX], (2, 4099), (1,), F32)
    found = run(made.generate(rows(4)), {"x": values}, target=target)
    assert found["argmax"].tolist() == [4000, 30]
    assert np.allclose(found["sum"], values.astype(np.float64).sum(1), atol=1e-2, equal_nan=True)
    x = np.random.default_rng(4).standard_normal((200, 72)).astype(np.float16)
    made = whole([ReductionKind.SUM], (200, 72), (0,), F16)
    found = run(made.generate(columns(16, 8, 2)), {"x": x}, target=target)
    assert np.allclose(found["sum"], x.astype(np.float64).sum(0), atol=1e-2)


def test_the_default_fills_the_device() -> None:
    """Whole sums and columns have blocks for every compute unit, and read packs of 16 bytes;
    rows that fill it by themselves, and short ones, are left whole."""
    total = whole([ReductionKind.SUM], (1 << 24,), (0,), F16).default_config()
    assert (total["vector"], int(total["split"]) >= 256) == (8, True)
    sums = whole([ReductionKind.SUM], (8192, 4096), (0,), F16).default_config()
    assert (sums["columns"], int(sums["split"]) >= 16) == (8, True)
    for size in ((4096, 4096), (1, 4096)):
        assert "split" not in whole([ReductionKind.SUM], size, (1,), F16).default_config()
    mi300 = (targets.find("gfx942"),)
    more = whole([ReductionKind.SUM], (1 << 24,), (0,), F16, made_for=mi300).default_config()
    assert int(more["split"]) >= 2 * 304, "blocks for every compute unit of an MI300X"


def test_rows_of_a_vocabulary_have_a_block_each_where_that_is_no_later_than_another_launch() -> (
    None
):
    hopper = (targets.find("sm_90"),)
    few = whole([ReductionKind.SUM], (1, 128256), (1,), F16, made_for=hopper).default_config()
    assert int(few["split"]) > 1
    many = whole([ReductionKind.SUM], (64, 50257), (1,), F16, made_for=hopper).default_config()
    assert "split" not in many and many["lanes"] == 1024
    long = whole([ReductionKind.SUM], (64, 1 << 24), (1,), F16, made_for=hopper).default_config()
    assert int(long["split"]) > 1


def test_what_cannot_be_shared_is_rejected_with_the_reason() -> None:
    made = whole([ReductionKind.SUM], (16, 40_000), (1,), F16)
    reasons = {
        str(config): rejected.reason
        for config in made.configs()
        if (rejected := made.reject(config)) is not None
    }
    assert "64 parts of 40000 elements have fewer than" in reasons[str(rows(64))]
    assert reasons[str(columns(4, 8))] == "rows are not adjacent in memory"
    turned = whole([ReductionKind.SUM], (40_000, 17), (0,), F16)
    rejected = turned.reject(columns(4, 8))
    assert rejected is not None and rejected.reason == "no access has 8 aligned, adjacent rows"


def kernels_of_each_kind() -> Iterator[TemplateCaller]:
    """A sum and an index of one long row, a variance of columns, a softmax, and running sums."""
    both = [ReductionKind.SUM, ReductionKind.ARGMAX]
    yield whole(both, (1 << 20,), (0,), F16).generate(rows(64, 8))
    yield reduction(*norm_of_columns(4096, 1024)).generate(columns(4, 8, 32))
    yield softmax((4, 1 << 18), 1).generate(rows(16, 4))
    row = scan(ReductionKind.SUM, 1, 1 << 20, F32)
    yield row.generate({"lanes": 256, "items": 4, "split": 64})
    across = scan(ReductionKind.MAX, 4096, 4096, F16, turned=True)
    yield across.generate({"lanes": 1, "columns": 8, "split": 64})


@pytest.mark.full
@pytest.mark.parametrize("target", ["gfx90a", "gfx950", "gfx1201"])
def test_one_text_builds_for_every_target(target: str) -> None:
    for caller in kernels_of_each_kind():
        resources = compiled(caller, target).resources
        for launch in caller.kernel.launches:
            assert resources[launch.function]["scratch_bytes"] == 0, launch.function
            assert resources[launch.function]["lds_bytes"] <= launch.lds_bytes


@pytest.mark.full
def test_the_same_text_builds_for_nvidia() -> None:
    (toolchain,) = (one for one in cuda_compilers(Search(cache=KEPT)) if one.name == NAME)
    for caller in kernels_of_each_kind():
        kernel = caller.kernel
        built = build(kernel.source, kernel.name, targets.find("sm_90"), toolchain, KEPT)
        assert isinstance(built, Build), built
