"""Rows, columns and scans of sizes that are not known, read in whole packs wherever they begin, on
CPU emulation and by the instructions, against NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pytest

from scheduler import targets
from scheduler.build.compile import build
from scheduler.build.cuda.toolchains import NAME, cuda_compilers
from scheduler.build.model import Build
from scheduler.build.toolchains import Search
from scheduler.codegen.caller import TemplateCaller
from scheduler.codegen.loops import alignment
from scheduler.codegen.rocm.reduction.template import ReductionTemplate
from scheduler.codegen.template import Config
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import SymbolInfo
from scheduler.ir.index.functions import symbol
from scheduler.ir.operations import Pointwise, Reduction, ReductionKind, Store
from scheduler.ir.values import Accumulator, Call, Cast, Load
from tests.support.caches import KEPT
from tests.support.memory import from_device, to_device
from tests.unit.codegen.loopnest import at, axes, buffer, compiled, run
from tests.unit.codegen.test_reduction_kernels import (
    BF16,
    F16,
    F32,
    I64,
    INSTRUCTIONS,
    KINDS,
    WAVES,
    reduction,
)
from tests.unit.codegen.test_shared_reductions import FLOATS, columns, rows, whole
from tests.unit.codegen.test_shared_scans import columns as scan_columns
from tests.unit.codegen.test_shared_scans import scan

R, C = symbol("s0"), symbol("s1")
SYMBOLS = (SymbolInfo("s0", 4096, 0, 1 << 16), SymbolInfo("s1", 4099, 0, 1 << 16))
LONG = (SymbolInfo("s0", 3, 0, 1 << 16), SymbolInfo("s1", 1 << 20, 0, 1 << 24))
TURNED = (LONG[1], LONG[0])
TALL = (SymbolInfo("s0", 1 << 16, 0, 1 << 20), SymbolInfo("s1", 136, 0, 1 << 16))


def values(count: int, length: int) -> np.ndarray:
    """With NaN, ties, infinities, at the first and last steps of rows too."""
    found = np.random.default_rng(count + length).standard_normal((count, length))
    found *= 0.5
    if length:
        found[1:2, :: max(length - 1, 1)] = 9.0  # equals: the first wins
        found[2:3] = -np.inf
        found[3:4, -1] = np.nan
        found[4:5, 0] = np.nan
    return found.astype(np.float32)


def check(made: Mapping[str, np.ndarray], x: np.ndarray, axis: int, where: object) -> None:
    for kind in FLOATS:
        with np.errstate(all="ignore"):
            want = KINDS[kind](x.astype(np.float64), axis=axis).reshape(-1)
        close = np.allclose(made[str(kind)], want, rtol=1e-5, atol=1e-4, equal_nan=True)
        assert close, (kind, where)


@pytest.mark.full(but=3)
@pytest.mark.parametrize("lanes", [8, 32, 256])
def test_every_kind_of_reduction_wherever_rows_begin(lanes: int) -> None:
    config = {"lanes": lanes, "vector": 4, "keep": False}
    made = whole(FLOATS, (R, C), (1,), F32, SYMBOLS)
    assert made.reject(config) is None
    caller = made.generate(config)
    assert "kiln::cut_row<kVector" in caller.kernel.source
    for count, length in ((5, 77), (5, 1), (6, 3), (5, 2), (3, 64), (5, 1023)):
        x = values(count, length)
        for target in WAVES:
            found = run(caller, {"x": x}, {"s0": count, "s1": length}, target)
            check(found, x, 1, (count, length, target))


def weighted_softmax(dtype: DType) -> ReductionTemplate:
    """softmax(x) * w of [s0, s1], stored as ``dtype``: the weights begin where no row does."""
    walked = axes(R, C)
    outer, inner = walked[:1], walked[1:]
    x, places = Cast(Load("x", at(walked), dtype), F32), at(outer)
    power = Call("exp", (Call("sub", (x, Load("top", places, F32)), F32),), F32)
    share = Call("truediv", (power, Load("total", places, F32)), F32)
    share = Call("mul", (share, Load("w", at(inner), F32)), F32)
    result = Accumulator(F32)
    members = [
        Reduction("op0", outer, inner, ReductionKind.MAX, x, F32, Store("top", places, result), ()),
        Reduction(
            "op1", outer, inner, ReductionKind.SUM, power, F32, Store("total", places, result), ()
        ),
        Pointwise("op2", walked, Store("y", at(walked), share), ()),
    ]
    kept = [buffer(name, F32, (R,)) for name in ("top", "total")]
    buffers = [buffer("x", dtype, (R, C)), buffer("w", F32, (C,)), *kept]
    return reduction(members, [*buffers, buffer("y", dtype, (R, C))], SYMBOLS, needed=("y",))


def check_softmax(caller: TemplateCaller, count: int, length: int, target: str) -> None:
    rng = np.random.default_rng(length)
    memory = {
        "x": to_device(rng.standard_normal((count, length)), BF16).reshape(-1),
        "w": rng.standard_normal(length).astype(np.float32),
    }
    x = from_device(memory["x"], BF16).reshape(count, length)
    power = np.exp(x - x.max(1, keepdims=True)) if length else x
    want = power / power.sum(1, keepdims=True) * memory["w"]
    found = run(caller, memory, {"s0": count, "s1": length}, target)["y"]
    found = from_device(found, BF16).reshape(count, length)
    assert np.allclose(found, want, rtol=2**-7, atol=1e-6), (count, length, target)


@pytest.mark.full
def test_a_softmax_keeps_odd_rows_in_registers() -> None:
    """Of every length: in registers, too long for them, aligned, and of a few steps."""
    made = weighted_softmax(BF16)
    config = made.default_config()
    assert (config["vector"], config["keep"]) == (4, True)  # the weights have 4 bytes
    caller = made.generate(config)
    assert "edge0[kEdges]" in caller.kernel.source
    for count, length in ((3, 1), (5, 7), (3, 4099), (2, 8191), (2, 9001), (1, 4096), (2, 0)):
        for target in WAVES:
            check_softmax(caller, count, length, target)


@pytest.mark.full(but=["isa:gfx942"])
@pytest.mark.parametrize("target", INSTRUCTIONS)
def test_the_instructions_of_a_softmax(target: str) -> None:
    made = weighted_softmax(BF16)
    check_softmax(made.generate(made.default_config()), 2, 331, target)


@pytest.mark.full
def test_odd_rows_of_a_known_length() -> None:
    """Of no multiple of anything they are cut; what packs of half the width divide is not."""
    made = whole(FLOATS, (6, 1023), (1,), F32)
    x = values(6, 1023)
    for config in (made.default_config(), {"lanes": 32, "vector": 2, "keep": False}):
        assert int(config["vector"]) > 1
        for target in WAVES:
            check(run(made.generate(config), {"x": x}, target=target), x, 1, (config, target))
    sums = [ReductionKind.SUM]
    widths = {
        length: whole(sums, (64, length), (1,), F16).default_config()["vector"]
        for length in (1023, 1022, 1020, 1024, 99)
    }
    assert widths == {1023: 8, 1022: 8, 1020: 4, 1024: 8, 99: 4}
    rejected = made.reject({"lanes": 1, "vector": 4, "keep": False})
    assert rejected is not None
    assert rejected.reason == "unaligned rows need 8 or more lanes"
    running = scan(ReductionKind.SUM, 3, 1023, F32)
    assert running.default_config()["items"] == 4
    found = run(running.generate(running.default_config()), {"x": np.ones((3, 1023), np.float32)})[
        "y"
    ]
    assert (found.reshape(3, 1023) == np.arange(1, 1024)).all()


def test_what_is_cut_moves_with_the_rows() -> None:
    """The rows' packs, not the weights', say where rows are cut."""
    made = weighted_softmax(BF16)
    (axis,), found = made.nest.inner, made.problem.row_packs[4].lead
    assert found is not None
    moving = [
        access.buffer
        for access in made.nest.accesses
        if alignment.is_aligned_with(made.nest, access, found, axis, 4)
    ]
    assert moving == ["x", "y"]


@pytest.mark.full(but=2)
@pytest.mark.parametrize("config", [rows(4, 4), rows(16, 2)], ids=str)
def test_long_rows_that_blocks_share(config: Config) -> None:
    made = whole(FLOATS, (R, C), (1,), F32, LONG)
    assert made.reject(config) is None
    caller = made.generate(config)
    for count, length in ((5, 5003), (1, 70_001), (5, 3), (2, 1 << 15)):
        x = values(count, length)
        for target in WAVES:
            found = run(caller, {"x": x}, {"s0": count, "s1": length}, target)
            check(found, x, 1, (count, length, target))


@pytest.mark.full(but=3)
@pytest.mark.parametrize("config", [columns(4, 4), columns(1, 2), columns(16, 4, 4)], ids=str)
def test_columns(config: Config) -> None:
    """In packs where their number allows it, apart where it does not."""
    made = whole(FLOATS, (R, C), (0,), F32, TALL)
    assert made.reject(config) is None
    caller = made.generate(config)
    for length, count in ((301, 136), (301, 137), (3, 1), (1, 2), (50, 1031)):
        x = np.ascontiguousarray(values(count, length).T)
        for target in WAVES:
            found = run(caller, {"x": x}, {"s0": length, "s1": count}, target)
            check(found, x, 0, (count, length, target))


@pytest.mark.full(but=["isa:gfx950"])
@pytest.mark.parametrize("target", ["isa:gfx950", "isa:gfx1100"])
def test_the_instructions_of_columns(target: str) -> None:
    """Of two outer axes, of which the inner one is no multiple of a pack."""
    depth = symbol("s2")
    symbols = (SymbolInfo("s0", 4096, 0, 4096), SymbolInfo("s2", 136, 0, 4096))
    made = whole(FLOATS, (3, R, depth), (1,), F32, symbols)
    caller = made.generate(columns(8, 4, 2))
    for length, count in ((40, 37), (33, 8)):
        x = values(3 * count, length).reshape(3, count, length).transpose(0, 2, 1)
        bindings = {"s0": length, "s2": count}
        found = run(caller, {"x": np.ascontiguousarray(x)}, bindings, target)
        check(found, x, 1, target)


def test_defaults_read_packs() -> None:
    sums = [ReductionKind.SUM]
    assert whole(sums, (R, C), (1,), F16, LONG).default_config()["vector"] >= 4
    assert whole(sums, (R, C), (0,), F16, TALL).default_config()["columns"] == 8
    assert scan(ReductionKind.SUM, R, C, F16, LONG).default_config()["items"] == 8
    assert scan(ReductionKind.SUM, R, C, F16, TURNED, turned=True).default_config()["columns"] == 8


@pytest.mark.full(but=4)
@pytest.mark.parametrize(
    "config",
    [
        {"lanes": 8, "items": 4},
        {"lanes": 256, "items": 2},
        {"lanes": 1, "items": 4},
        {"lanes": 256, "items": 4, "split": 8},
    ],
    ids=str,
)
def test_scans_wherever_rows_begin(config: Config) -> None:
    made = scan(ReductionKind.SUM, R, C, F32, LONG)
    assert made.reject(config) is None
    caller = made.generate(config)
    rng = np.random.default_rng(7)
    for count, length in ((5, 77), (3, 1), (7, 3), (2, 9001), (3, 512), (2, 0)):
        x = rng.integers(-9, 9, (count, length)).astype(np.float32)
        for target in WAVES:
            found = run(caller, {"x": x.reshape(-1)}, {"s0": count, "s1": length}, target)["y"]
            assert (found.reshape(count, length) == np.cumsum(x, 1)).all(), (length, target)


@pytest.mark.full(but=["cpu"])
@pytest.mark.parametrize("target", ["cpu", "isa:gfx942", "isa:gfx1100"])
def test_a_scan_of_another_ones_results(target: str) -> None:
    made = scan(ReductionKind.MAX, R, C, F32, LONG, places=True)
    caller = made.generate({"lanes": 256, "items": 2, "split": 4})
    rng = np.random.default_rng(5)
    for count, length in ((2, 1021), (1, 2048)):
        x = rng.integers(0, 900, (count, length)).astype(np.float32)
        found = run(caller, {"x": x.reshape(-1)}, {"s0": count, "s1": length}, target)
        best = np.maximum.accumulate(x, axis=1)
        assert (found["y"].reshape(count, -1) == best).all()
        last = np.maximum.accumulate(np.where(x == best, np.arange(length), 0), axis=1)
        assert (found["places"].reshape(count, -1) == last).all()


@pytest.mark.full(but=["sum"])
@pytest.mark.parametrize("kind", [ReductionKind.SUM, ReductionKind.MAX])
def test_scans_of_columns(kind: ReductionKind) -> None:
    made = scan(kind, R, C, I64, TURNED, turned=True)
    caller = made.generate(scan_columns(2, 4))
    along = np.add if kind is ReductionKind.SUM else np.maximum
    rng = np.random.default_rng(8)
    for length, count in ((301, 136), (301, 137), (3, 1), (1, 2), (50, 1031)):
        x = rng.integers(-99, 99, (length, count))
        for target in WAVES:
            bindings = {"s0": count, "s1": length}
            found = run(caller, {"x": x.reshape(-1)}, bindings, target)["y"]
            assert (found.reshape(length, count) == along.accumulate(x, axis=0)).all(), target


def kernels() -> Iterator[TemplateCaller]:
    both = [ReductionKind.SUM, ReductionKind.ARGMAX]
    yield weighted_softmax(BF16).generate({"lanes": 256, "vector": 4, "keep": True})
    yield whole(both, (R, C), (1,), F16, LONG).generate(rows(64, 8))
    yield whole(both, (R, C), (0,), F16, TALL).generate(columns(4, 8, 32))
    row = scan(ReductionKind.SUM, R, C, F32, LONG)
    yield row.generate({"lanes": 256, "items": 4, "split": 64})
    across = scan(ReductionKind.MAX, R, C, F16, TURNED, turned=True)
    yield across.generate(scan_columns(8, 64))


@pytest.mark.full
@pytest.mark.parametrize("target", ["gfx950", "gfx1201"])
def test_one_text_builds_for_every_target(target: str) -> None:
    for caller in kernels():
        resources = compiled(caller, target).resources
        for launch in caller.kernel.launches:
            assert resources[launch.function]["scratch_bytes"] == 0, launch.function


@pytest.mark.full
def test_the_same_text_builds_for_nvidia() -> None:
    (toolchain,) = (one for one in cuda_compilers(Search(cache=KEPT)) if one.name == NAME)
    for caller in kernels():
        kernel = caller.kernel
        built = build(kernel.source, kernel.name, targets.find("sm_90"), toolchain, KEPT)
        assert isinstance(built, Build), built
