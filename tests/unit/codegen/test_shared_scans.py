"""Scans in packs, and of rows that several blocks share, on CPU emulation against NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scheduler.codegen.rocm.scan.template import ScanTemplate
from scheduler.codegen.template import Config
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import SymbolInfo
from scheduler.ir.index.functions import symbol
from scheduler.ir.operations import GroupKind, ReductionKind, Scan, Store
from scheduler.ir.values import Accumulator, Call, Cast, IndexValue, Load, Value
from tests.support.memory import from_device, to_device
from tests.unit.codegen.loopnest import at, axes, buffer, group, ints, run
from tests.unit.codegen.test_reduction_kernels import F16, F32, F64, I64, TARGETS, WAVES

R, C = symbol("s0"), symbol("s1")
SYMBOLS = (SymbolInfo("s0", 2, 1, 4096), SymbolInfo("s1", 1 << 20, 0, 1 << 24))


def scan(
    kind: ReductionKind,
    rows: object,
    length: object,
    dtype: DType,
    symbols: tuple[SymbolInfo, ...] = (),
    *,
    places: bool = False,
    turned: bool = False,
) -> ScanTemplate:
    """One scan along rows, or (``turned``) columns of memory; with ``places`` a second one over
    where the first one's results stood, as the places of cummax are found."""
    outer = axes(rows)
    (step,) = axes(length, prefix="r")
    index, held = (*at(outer), step.var), dtype.compute_dtype
    load = Load("x", index, dtype)
    value: Value = load if held is dtype else Cast(load, held)
    store = Store("y", index, Accumulator(held))
    members = [Scan("op0", outer, step, kind, value, held, store, ())]
    buffers = [buffer("x", dtype, (rows, length)), buffer("y", dtype, (rows, length))]
    if places:
        same = Call("eq", (value, Load("y", index, dtype)), DType.BOOL)
        here = Call("mul", (Cast(same, I64), IndexValue(step.var, I64)), I64)
        found = Store("places", index, Accumulator(I64))
        members.append(Scan("op1", outer, step, ReductionKind.MAX, here, I64, found, ()))
        buffers.append(buffer("places", I64, (rows, length)))
    if turned:
        buffers = [replace(one, stride=ints(1, rows)) for one in buffers]
    node, lowered = group(GroupKind.SCAN, members, buffers, symbols)
    return ScanTemplate(node, lowered, TARGETS)


@pytest.mark.full(but=5)
@pytest.mark.parametrize(
    "config",
    [
        {"lanes": 1, "items": 4},
        {"lanes": 8, "items": 8},
        {"lanes": 256, "items": 2},
        {"lanes": 256, "items": 4, "split": 8},
        {"lanes": 256, "split": 16},
    ],
    ids=str,
)
def test_running_sums(config: Config) -> None:
    """Of rows that fill no block, and parts that do not come out even."""
    length = 17_000 if config["lanes"] == 256 else 240
    if int(config.get("split", 1)) > 1:
        length = 35_000
    made = scan(ReductionKind.SUM, 3, length, F16)
    assert made.reject(config) is None
    x = np.random.default_rng(3).standard_normal((3, length)) / 64
    memory = {"x": to_device(x, F16).reshape(-1)}
    want = np.cumsum(from_device(memory["x"], F16).reshape(3, length), 1)
    for target in WAVES:
        found = from_device(run(made.generate(config), memory, target=target)["y"], F16)
        assert np.allclose(found.reshape(3, length), want, rtol=2e-3, atol=2e-3), target


@pytest.mark.full(but=["max"])
@pytest.mark.parametrize("kind", [ReductionKind.MAX, ReductionKind.LOGSUMEXP])
def test_a_nan_stays_in_all_parts_behind_it(kind: ReductionKind) -> None:
    length = 9_000
    made = scan(kind, 2, length, F32)
    x = (np.random.default_rng(4).standard_normal((2, length)) * 9).astype(np.float32)
    x[0, 5_000], x[1, :4_000] = np.nan, -np.inf
    along = np.maximum if kind is ReductionKind.MAX else np.logaddexp
    want = along.accumulate(x.astype(np.float64), axis=1)
    found = run(made.generate({"lanes": 256, "items": 2, "split": 4}), {"x": x})["y"]
    np.testing.assert_allclose(found.reshape(2, length), want, rtol=1e-5)


@pytest.mark.full(but=["cpu"])
@pytest.mark.parametrize("target", ["cpu", "cpu-gfx1100", "isa:gfx942", "isa:gfx1100"])
def test_a_scan_of_another_ones_results(target: str) -> None:
    """Each is two launches: the second one begins with what all blocks of the first have stored."""
    length = 8_192
    made = scan(ReductionKind.MAX, 1, length, F32, places=True)
    caller = made.generate({"lanes": 256, "items": 2, "split": 4})
    assert len(caller.kernel.launches) == 4
    x = np.random.default_rng(5).integers(0, 4_000, (1, length)).astype(np.float32)
    found = run(caller, {"x": x}, target=target)
    best = np.maximum.accumulate(x, axis=1)
    assert (found["y"].reshape(1, -1) == best).all()
    last = np.maximum.accumulate(np.where(x == best, np.arange(length), 0), axis=1)
    assert (found["places"].reshape(1, -1) == last).all()


@pytest.mark.full
@pytest.mark.parametrize(("kind", "dtype"), [(ReductionKind.SUM, I64), (ReductionKind.PROD, F64)])
def test_sizes_that_are_not_known(kind: ReductionKind, dtype: DType) -> None:
    made = scan(kind, R, C, dtype, SYMBOLS)
    config = made.default_config()
    assert int(config["split"]) > 1
    caller = made.generate(config)
    rng = np.random.default_rng(6)
    for count, length in ((1, 1), (3, 5), (2, 70_001)):
        x = rng.integers(-3, 4, (count, length)) if dtype is I64 else 1 + rng.random() * 1e-5
        x = np.broadcast_to(x, (count, length)).astype(dtype.numpy)
        found = run(caller, {"x": x.reshape(-1)}, {"s0": count, "s1": length})["y"]
        want = np.cumsum(x, 1) if kind is ReductionKind.SUM else np.cumprod(x, 1)
        assert np.allclose(found.reshape(count, length), want, rtol=1e-12)


def columns(width: int, split: int) -> Config:
    return {"lanes": 1, "columns": width, "split": split}


@pytest.mark.full(but=4)
@pytest.mark.parametrize(
    ("kind", "dtype", "config", "target"),
    [
        (ReductionKind.SUM, F16, columns(8, 16), "cpu"),
        (ReductionKind.SUM, F16, columns(4, 4), "isa:gfx942"),
        (ReductionKind.LOGSUMEXP, F32, columns(1, 64), "cpu-gfx1100"),
        (ReductionKind.MAX, I64, columns(2, 4), "isa:gfx1100"),
    ],
)
def test_columns(kind: ReductionKind, dtype: DType, config: Config, target: str) -> None:
    """In packs, of parts that do not come out even, with a NaN that stays."""
    length, count = 301, 136
    made = scan(kind, count, length, dtype, turned=True)
    assert made.reject({**config, "split": 4}) is None
    x = np.random.default_rng(7).standard_normal((length, count)) * 4
    if kind is ReductionKind.LOGSUMEXP:
        x[100, 5], x[:50, 6] = np.nan, -np.inf
    memory = {"x": to_device(x, dtype).reshape(-1)}
    held = from_device(memory["x"], dtype).reshape(length, count)
    along = {ReductionKind.SUM: np.add, ReductionKind.MAX: np.maximum}.get(kind, np.logaddexp)
    with np.errstate(all="ignore"):
        want = along.accumulate(held, axis=0)
    found = from_device(run(made.generate(config), memory, target=target)["y"], dtype)
    rtol = 2e-3 if dtype is F16 else 1e-5
    np.testing.assert_allclose(found.reshape(length, count), want, rtol=rtol, atol=2e-3)


def test_columns_of_sizes_that_are_not_known() -> None:
    made = scan(ReductionKind.SUM, R, C, F32, SYMBOLS, turned=True)
    config = made.default_config()
    assert config["columns"] == 4
    caller = made.generate(config)
    for count, length in ((1, 1), (70, 3), (3, 1_001)):
        x = np.random.default_rng(8).standard_normal((length, count)).astype(np.float32)
        found = run(caller, {"x": x.reshape(-1)}, {"s0": count, "s1": length})["y"]
        assert np.allclose(found.reshape(length, count), np.cumsum(x, 0), atol=1e-3)


def test_the_default_shares_rows_that_leave_units_idle() -> None:
    long = scan(ReductionKind.SUM, 1, 1 << 24, F32).default_config()
    assert long == {"lanes": 256, "items": 4, "split": 1024}
    many = scan(ReductionKind.SUM, 4096, 4096, F16).default_config()
    assert (many.get("split", 1), many["items"]) == (1, 8)
    turned = scan(ReductionKind.SUM, 4096, 4096, F16, turned=True).default_config()
    assert turned == columns(8, 128)
