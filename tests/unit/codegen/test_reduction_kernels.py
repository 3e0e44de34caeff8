"""Reduction, scan and attention kernels on CPU emulation against NumPy, for both wave sizes."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler import targets
from scheduler.codegen.rocm.reduction.template import ReductionTemplate
from scheduler.codegen.rocm.scan.template import ScanTemplate
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import SymbolInfo
from scheduler.ir.index.functions import symbol
from scheduler.ir.operations import GroupKind, Pointwise, Reduction, ReductionKind, Scan, Store
from scheduler.ir.values import Accumulator, Call, Cast, Const, Load, Value
from tests.support.memory import from_device
from tests.unit.codegen.loopnest import (
    at,
    axes,
    buffer,
    compiled,
    group,
    random_memory,
    run,
)

F32, F16, BF16, F64, I64, BOOL = (
    DType.F32,
    DType.F16,
    DType.BF16,
    DType.F64,
    DType.I64,
    DType.BOOL,
)
TARGETS = tuple(targets.find(n) for n in ("gfx942", "gfx1100"))
S = symbol("s27")
SYMBOL = SymbolInfo("s27", 6, 1, 64)
WAVES = ("cpu", "cpu-gfx1100")
INSTRUCTIONS = ("isa:gfx942", "isa:gfx950", "isa:gfx1201")


def reduction(
    members: list, buffers: list, symbols: tuple = (), needed: tuple[str, ...] | None = None
) -> ReductionTemplate:
    node, lowered = group(GroupKind.REDUCTION, members, buffers, symbols, needed=needed)
    return ReductionTemplate(node, lowered, TARGETS)


KINDS = {
    ReductionKind.SUM: np.sum,
    ReductionKind.PROD: np.prod,
    ReductionKind.MAX: np.max,
    ReductionKind.MIN: np.min,
    ReductionKind.ANY: np.any,
    ReductionKind.ALL: np.all,
    ReductionKind.ARGMAX: np.argmax,
    ReductionKind.ARGMIN: np.argmin,
}


@pytest.mark.full
def test_every_kind_of_reduction() -> None:
    """All in one kernel, over rows whose length is no multiple of anything."""
    outer, inner = axes(5), axes(77, prefix="r")
    x, b = Load("x", at(outer) + at(inner), F32), Load("b", at(outer) + at(inner), BOOL)
    buffers = [buffer("x", F32, (5, 77)), buffer("b", BOOL, (5, 77))]
    members = []
    for kind in KINDS:
        boolean = kind in (ReductionKind.ANY, ReductionKind.ALL)
        index = kind in (ReductionKind.ARGMAX, ReductionKind.ARGMIN)
        dtype = BOOL if boolean else I64 if index else F32
        buffers.append(buffer(str(kind), dtype, (5,)))
        members.append(
            Reduction(
                f"op_{kind}",
                outer,
                inner,
                kind,
                b if boolean else x,
                dtype,
                Store(str(kind), at(outer), Accumulator(dtype)),
                (),
            )
        )
    rng = np.random.default_rng(3)
    values = rng.standard_normal((5, 77)).astype(np.float32)
    values[0, 10] = np.nan
    values[1, 3:9] = 9.0  # equals: the first wins
    values[2] = -np.inf
    flags = rng.random((5, 77)) < np.array([[0.0], [0.02], [0.5], [0.98], [1.0]])
    made = reduction(members, buffers)
    for lanes in (1, 8, 128):
        caller = made.generate({"lanes": lanes, "vector": 1, "keep": False})
        for target in (*WAVES, *(INSTRUCTIONS if lanes == 128 else ())):
            found = run(caller, {"x": values, "b": flags}, target=target)
            for kind, numpy in KINDS.items():
                boolean = kind in (ReductionKind.ANY, ReductionKind.ALL)
                with np.errstate(all="ignore"):
                    want = numpy(flags if boolean else values.astype(np.float64), axis=1)
                close = np.allclose(found[str(kind)], want, rtol=1e-5, atol=1e-5, equal_nan=True)
                assert close, (kind, lanes, target)


def layer_norm(rows: object, length: int) -> tuple[list, list]:
    outer, inner = axes(rows), axes(length, prefix="r")
    x = Cast(Load("x", at(outer) + at(inner), F16), F32)
    scale = Const(1 / length, F32)
    centred = Call("sub", (x, Load("mean", at(outer), F32)), F32)
    variance = Call("mul", (Accumulator(F32, "op1"), scale), F32)
    rstd = Call("rsqrt", (Call("add", (variance, Const(1e-5, F32)), F32),), F32)
    normed = Call("mul", (centred, Load("rstd", at(outer), F32)), F32)
    members = [
        Reduction(
            "op0", outer, inner, ReductionKind.SUM, x, F32,
            Store("mean", at(outer), Call("mul", (Accumulator(F32), scale), F32)), ("mean",),
        ),
        Reduction(
            "op1", outer, inner, ReductionKind.SUM, Call("mul", (centred, centred), F32), F32,
            Store("rstd", at(outer), rstd), ("var",),
        ),
        Pointwise(
            "op2", outer + inner,
            Store(
                "y", at(outer) + at(inner),
                Call("mul", (normed, Load("w", at(inner), F32)), F32), ("norm",),
            ),
            ("norm",),
        ),
    ]  # fmt: skip
    buffers = [
        buffer("x", F16, (rows, length)),
        buffer("w", F32, (length,)),
        buffer("mean", F32, (rows,)),
        buffer("rstd", F32, (rows,)),
        buffer("y", BF16, (rows, length)),
    ]
    return members, buffers


@pytest.mark.full
def test_a_norm_is_one_kernel_in_any_configuration() -> None:
    members, buffers = layer_norm(S, 96)
    made = reduction(members, buffers, (SYMBOL,))
    bindings = {"s27": 7}
    rng = np.random.default_rng(4)
    memory = {b.name: random_memory(rng, b, bindings) for b in buffers}
    x = from_device(memory["x"], F16).reshape(7, 96)
    rstd = 1 / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    want = (x - x.mean(1, keepdims=True)) * rstd * memory["w"]
    serving = [config for config in made.configs() if made.reject(config) is None]
    assert made.default_config() in serving
    assert {config["keep"] for config in serving} == {False, True}
    for config in serving[::5]:
        for target in WAVES:
            found = run(made.generate(config), memory, bindings, target)
            assert np.allclose(found["mean"], x.mean(1), atol=1e-6), (config, target)
            assert np.allclose(found["rstd"], rstd[:, 0], rtol=1e-5), (config, target)
            y = from_device(found["y"], BF16).reshape(7, 96)
            assert np.allclose(y, want, rtol=2**-8, atol=1e-5), (config, target)


def test_what_only_later_members_read_stays_in_registers() -> None:
    members, buffers = layer_norm(S, 96)
    made = reduction(members, buffers, (SYMBOL,), needed=("y",))
    caller = made.generate(made.default_config())
    assert [arg.name for arg in caller.kernel.args if arg.is_output] == ["out_ptr0"]
    assert caller.call.args["out_ptr0"] == "y"


def test_each_line_belongs_to_the_node_that_it_computes() -> None:
    members, buffers = layer_norm(S, 96)
    caller = reduction(members, buffers, (SYMBOL,)).generate(
        {"lanes": 8, "vector": 1, "keep": False}
    )
    lines = caller.kernel.source.split("\n")
    by_node: dict[str, list[str]] = {}
    for origin in caller.kernel.line_origins:
        for node in origin.nodes:
            by_node.setdefault(node, []).extend(lines[origin.first - 1 : origin.last])
    assert any("kiln::rsqrt" in line for line in by_node["var"])
    assert any("out_ptr2[" in line for line in by_node["norm"])
    assert not any("kiln::rsqrt" in line for line in by_node["norm"])


def test_reducing_an_outer_dimension_reads_whole_lines() -> None:
    """x[k, n] summed over k: neighbouring threads take neighbouring columns."""
    outer, inner = axes(2048), axes(33, prefix="r")
    x = Load("x", at(inner) + at(outer), F32)
    store = Store("y", at(outer), Accumulator(F32))
    buffers = [buffer("x", F32, (33, 2048)), buffer("y", F32, (2048,))]
    made = reduction(
        [Reduction("op0", outer, inner, ReductionKind.SUM, x, F32, store, ())], buffers
    )
    config = made.default_config()
    assert config["columns"] == 4
    rng = np.random.default_rng(5)
    memory = {b.name: random_memory(rng, b, {}) for b in buffers}
    want = memory["x"].reshape(33, 2048).astype(np.float64).sum(0)
    assert np.allclose(run(made.generate(config), memory)["y"], want, atol=1e-5)


def test_a_short_row_has_one_thread() -> None:
    outer, inner = axes(4096), axes(9, prefix="r")
    x = Load("x", at(outer) + at(inner), F32)
    store = Store("y", at(outer), Accumulator(F32))
    buffers = [buffer("x", F32, (4096, 9)), buffer("y", F32, (4096,))]
    made = reduction(
        [Reduction("op0", outer, inner, ReductionKind.MAX, x, F32, store, ())], buffers
    )
    assert made.default_config() == {"lanes": 1, "vector": 1, "keep": False}


def test_no_rows_and_no_columns() -> None:
    outer, inner = axes(S), axes(symbol("s0"), prefix="r")
    x = Load("x", at(outer) + at(inner), F32)
    store = Store("y", at(outer), Accumulator(F32))
    buffers = [buffer("x", F32, (S, symbol("s0"))), buffer("y", F32, (S,))]
    made = reduction(
        [Reduction("op0", outer, inner, ReductionKind.SUM, x, F32, store, ())],
        buffers,
        (SYMBOL, SymbolInfo("s0", 5, 0, 100)),
    )
    caller = made.generate(made.default_config())
    nothing = {"x": np.zeros(0, np.float32)}
    assert run(caller, nothing, {"s27": 0, "s0": 5})["y"].size == 0
    assert (run(caller, nothing, {"s27": 4, "s0": 0})["y"] == 0).all()


def test_idle_lanes_are_rejected_with_the_reason() -> None:
    members, buffers = layer_norm(S, 96)
    made = reduction(members, buffers, (SYMBOL,))
    rejected = made.reject({"lanes": 1024, "vector": 1, "keep": False})
    assert rejected is not None
    assert rejected.reason == "1024 lanes of 1 for 96 elements: half would be idle"


# -- scans ----------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize(
    ("dtype", "held", "kind"),
    [
        (F16, F32, ReductionKind.SUM),
        (BOOL, I64, ReductionKind.SUM),
        (F64, F64, ReductionKind.PROD),
    ],
    ids=["f16", "b8", "f64"],
)
def test_running_sums_and_products(dtype: DType, held: DType, kind: ReductionKind) -> None:
    outer = axes(3)
    (step,) = axes(301, prefix="r")
    index = (*at(outer), step.var)
    value: Value = Cast(Load("x", index, dtype), held)
    out = F32 if dtype is F16 else held
    store = Store("y", index, Accumulator(held))
    buffers = [buffer("x", dtype, (3, 301)), buffer("y", out, (3, 301))]
    scan = Scan("op0", outer, step, kind, value, held, store, ())
    node, lowered = group(GroupKind.SCAN, [scan], buffers)
    made = ScanTemplate(node, lowered, TARGETS)
    rng = np.random.default_rng(6)
    memory = {b.name: random_memory(rng, b, {}) for b in buffers}
    x = from_device(memory["x"], dtype).reshape(3, 301).astype(np.float64)
    want = np.cumsum(x, 1) if kind is ReductionKind.SUM else np.cumprod(x, 1)
    assert made.reject(made.default_config()) is None
    for lanes in (1, 8, 256):
        for target in WAVES:
            found = run(made.generate({"lanes": lanes}), memory, target=target)
            got = from_device(found["y"], out).reshape(3, 301)
            assert np.allclose(got, want, rtol=1e-5, atol=1e-4), (lanes, target)


@pytest.mark.full(but=["gfx90a"])
@pytest.mark.parametrize("target", ["gfx90a", "gfx1030", "gfx1201"])
def test_one_text_builds_for_every_target(target: str) -> None:
    members, buffers = layer_norm(S, 1536)
    made = reduction(members, buffers, (SYMBOL,))
    for config in ({"lanes": 256, "vector": 4, "keep": True}, made.default_config()):
        caller = made.generate(config)
        (resources,) = compiled(caller, target).resources.values()
        assert resources["scratch_bytes"] == 0
        within_a_wave = int(config["lanes"]) <= resources["wavefront"]
        assert resources["lds_bytes"] == (
            0 if within_a_wave else caller.kernel.launches[0].lds_bytes
        )
