"""Packs of neighbouring elements where sizes are not known before, or do not fill the last pack."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler import targets
from scheduler.codegen.rocm.pointwise.template import PointwiseTemplate
from scheduler.codegen.rocm.reduction.template import ReductionTemplate
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import SymbolInfo
from scheduler.ir.index.functions import symbol
from scheduler.ir.operations import (
    Buffer,
    GroupKind,
    Pointwise,
    Reduction,
    ReductionKind,
    Store,
)
from scheduler.ir.values import Accumulator, Call, Cast, Const, Load
from tests.support.memory import from_device
from tests.unit.codegen.loopnest import Points, at, axes, buffer, group, random_memory, run

F32, F16 = DType.F32, DType.F16
GPU = tuple(targets.find(name) for name in ("gfx942", "gfx1201"))
ROWS, COLUMNS = symbol("s0"), symbol("s1")
SYMBOLS = (SymbolInfo("s0", 4096, 1, None), SymbolInfo("s1", 4096, 1, None))


def template(pointwise: Pointwise, buffers: list[Buffer]) -> PointwiseTemplate:
    node, lowered = group(GroupKind.POINTWISE, [pointwise], buffers, SYMBOLS)
    return PointwiseTemplate(node, lowered, GPU)


def flat(size: object) -> tuple[Pointwise, list[Buffer]]:
    """y = x + x over one axis."""
    walked = axes(size)
    x = Cast(Load("x", at(walked), F16), F32)
    store = Store("y", at(walked), Call("add", (x, x), F32))
    return Pointwise("op0", walked, store, ()), [buffer(n, F16, (size,)) for n in "xy"]


@pytest.mark.full
@pytest.mark.parametrize("target", ["cpu", "isa:gfx942"])
@pytest.mark.parametrize("size", [1, 7, 2047, 2048, 2049, 4101])
def test_any_number_of_elements(size: int, target: str) -> None:
    pointwise, buffers = flat(COLUMNS)
    caller = template(pointwise, buffers).generate({"threads": 256, "vector": 8})
    assert "load_pack<8>" in caller.kernel.source
    rng = np.random.default_rng(size)
    memory = {b.name: random_memory(rng, b, {"s1": size}) for b in buffers}
    found = run(caller, memory, {"s1": size}, target)
    assert (from_device(found["y"], F16) == 2 * from_device(memory["x"], F16)).all()


def test_an_odd_size_has_packs_and_a_rest() -> None:
    pointwise, buffers = flat(4099)
    made = template(pointwise, buffers)
    caller = made.generate({"threads": 256, "vector": 8})
    memory = {b.name: random_memory(np.random.default_rng(1), b, {}) for b in buffers}
    found = run(caller, memory)
    assert (from_device(found["y"], F16) == 2 * from_device(memory["x"], F16)).all()


def test_large_dynamic_sizes_get_packs_by_default() -> None:
    symbols = (SymbolInfo("s1", 1 << 24, 1, None),)
    pointwise, buffers = flat(COLUMNS)
    node, lowered = group(GroupKind.POINTWISE, [pointwise], buffers, symbols)
    assert PointwiseTemplate(node, lowered, GPU).default_config()["vector"] == 8


@pytest.mark.parametrize("columns", [8, 24, 33, 1000, 1001])
def test_rows_are_taken_in_packs_where_their_length_allows(columns: int) -> None:
    """With a bias, rows stay rows: the block looks whether they begin at whole packs."""
    walked = axes(ROWS, COLUMNS)
    x, b = Load("x", at(walked), F32), Load("b", (walked[1].var,), F32)
    value = Call("add", (x, b), F32)
    sizes = (ROWS, COLUMNS)
    buffers = [buffer("x", F32, sizes), buffer("b", F32, (COLUMNS,)), buffer("y", F32, sizes)]
    made = template(Pointwise("op0", walked, Store("y", at(walked), value), ()), buffers)
    caller = made.generate({"threads": 128, "vector": 4})
    assert "s1 % kVector == 0" in caller.kernel.source
    bindings = {"s0": 5, "s1": columns}
    memory = {b.name: random_memory(np.random.default_rng(1), b, bindings) for b in buffers}
    want = Points(walked, memory, made.lowered.buffers, bindings).value(value)
    assert np.allclose(run(caller, memory, bindings)["y"].reshape(5, columns), want)


def centred(rows: object, columns: object) -> tuple[list, list[Buffer]]:
    """y = x - the sum of x's row / 8: two loops over each row."""
    outer, inner = axes(rows), axes(columns, prefix="r")
    x = Cast(Load("x", at(outer) + at(inner), F16), F32)
    part = Call("mul", (Accumulator(F32), Const(0.125, F32)), F32)
    total = Store("sum", at(outer), part)
    value = Call("sub", (x, Load("sum", at(outer), F32)), F32)
    members = [
        Reduction("op0", outer, inner, ReductionKind.SUM, x, F32, total, ()),
        Pointwise("op1", outer + inner, Store("y", at(outer) + at(inner), value), ()),
    ]
    sizes = (rows, columns)
    return members, [buffer("x", F16, sizes), buffer("sum", F32, (rows,)), buffer("y", F32, sizes)]


@pytest.mark.full(but=["1-cpu"])
@pytest.mark.parametrize("target", ["cpu", "cpu-gfx1201", "isa:gfx942"])
@pytest.mark.parametrize("columns", [1, 8, 1000, 1001, 2048, 3000])
def test_rows_stay_in_registers_where_they_fit_and_begin_at_packs(
    columns: int, target: str
) -> None:
    """Up to 2048 elements do; 1001 are read one by one, 3000 in packs and twice."""
    members, buffers = centred(ROWS, COLUMNS)
    node, lowered = group(GroupKind.REDUCTION, members, buffers, SYMBOLS)
    made = ReductionTemplate(node, lowered, GPU)
    assert made.default_config() == {"lanes": 256, "vector": 4, "keep": True}
    caller = made.generate({"lanes": 64, "vector": 4, "keep": True})
    assert "kept0[kSteps]" in caller.kernel.source
    bindings = {"s0": 3, "s1": columns}
    memory = {b.name: random_memory(np.random.default_rng(2), b, bindings) for b in buffers}
    x = from_device(memory["x"], F16).reshape(3, columns)
    found = run(caller, memory, bindings, target)["y"].reshape(3, columns)
    assert np.allclose(found, x - x.sum(1, keepdims=True) / 8, atol=1e-4)
