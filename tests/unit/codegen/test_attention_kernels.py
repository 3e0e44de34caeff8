"""Attention kernels on CPU emulation against NumPy, for matrix instructions and plain FMA."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from scheduler import targets
from scheduler.codegen.rocm.attention.template import AttentionTemplate
from scheduler.fusion.nodes import SchedulerNode
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Expr, SymbolInfo
from scheduler.ir.index.functions import FloorDiv, as_expr, symbol
from scheduler.ir.operations import Attention, Axis, GroupKind, Lowered, Store
from scheduler.ir.values import Accumulator, Call, Cast, Load, Value
from scheduler.targets.amd import amd_hardware
from tests.support.memory import from_device
from tests.unit.codegen.loopnest import (
    axes,
    buffer,
    compiled,
    group,
    random_memory,
    run,
)

F32, F16, BF16, F64, BOOL = DType.F32, DType.F16, DType.BF16, DType.F64, DType.BOOL
TARGETS = tuple(targets.find(n) for n in ("gfx942", "gfx1100"))
S = symbol("s27")
SYMBOL = SymbolInfo("s27", 40, 1, 500)
BATCH, HEADS = 2, 4


def attention_node(
    dtype: DType,
    rows: object,
    columns: object,
    depth: int,
    value_depth: int,
    *,
    mask: DType | None = None,
    causal: bool = False,
    key_heads: int = HEADS,
    plain: bool = False,
    computed: bool = False,
    scale: float | None = None,
    info: SymbolInfo = SYMBOL,
    window: Callable[[Expr, Expr], Value] | None = None,
    cap: float | None = None,
    safe: bool = True,
) -> tuple[SchedulerNode, Lowered]:
    """q as (batch, row, head, depth); k and v as (batch, head, column, depth). The output is
    multiplied by 2 in the epilogue where it is not ``plain``; with ``computed`` the keys are
    doubled in the prologue. ``window`` says of a row and a column whether it sees it, beside a
    boolean mask."""
    b, h = axes(BATCH, HEADS, prefix="b")
    row, column = Axis(symbol("l"), as_expr(rows)), Axis(symbol("s"), as_expr(columns))
    d, e = Axis(symbol("d"), as_expr(depth)), Axis(symbol("e"), as_expr(value_depth))
    key_head = h.var if key_heads == HEADS else FloorDiv(h.var, as_expr(HEADS // key_heads))
    buffers = [
        buffer("q", dtype, (BATCH, rows, HEADS, depth)),
        buffer("k", dtype, (BATCH, key_heads, columns, depth)),
        buffer("v", dtype, (BATCH, key_heads, columns, value_depth)),
        buffer("o", dtype, (BATCH, rows, HEADS, value_depth)),
    ]
    tree = None
    if mask is not None:
        buffers.append(buffer("m", mask, (BATCH, rows, columns)))
        tree = Load("m", (b.var, row.var, column.var), mask)
        tree = Cast(tree, F32) if mask.is_float and mask is not F32 else tree
    if window is not None:
        seen = window(row.var, column.var)
        tree = seen if tree is None else Call("logical_and", (seen, tree), BOOL)
    held = dtype.compute_dtype
    result = Accumulator(held)
    keys = Load("k", (b.var, key_head, column.var, d.var), dtype)
    if computed:
        wide = keys if held is dtype else Cast(keys, held)
        keys = Cast(Call("add", (wide, wide), held), dtype)
    stored = result if plain else Call("add", (result, result), held)
    operation = Attention(
        "att", (b, h), row, column, d, e,
        Load("q", (b.var, row.var, h.var, d.var), dtype),
        keys,
        Load("v", (b.var, key_head, column.var, e.var), dtype),
        tree, causal, 1 / math.sqrt(depth) if scale is None else scale,
        (Store("o", (b.var, row.var, h.var, e.var), stored),), (), cap, safe,
    )  # fmt: skip
    return group(GroupKind.ATTENTION, [operation], buffers, (info,))


def attention(*args: object, **kwargs: object) -> AttentionTemplate:
    """HIP's template for ``attention_node``."""
    node, lowered = attention_node(*args, **kwargs)
    return AttentionTemplate(node, lowered, TARGETS)


def reference(memory: dict, made: AttentionTemplate, rows: int) -> np.ndarray:
    def held(name: str, *shape: int) -> np.ndarray:
        return from_device(memory[name], made.lowered.buffers[name].dtype).reshape(shape)

    operation = made.operation
    columns, depth = int(operation.column.size), int(operation.depth.size)
    value_depth = int(operation.value_depth.size)
    key_heads = int(made.lowered.buffers["k"].size[1])
    q = held("q", BATCH, rows, HEADS, depth).transpose(0, 2, 1, 3)
    k = np.repeat(held("k", BATCH, key_heads, columns, depth), HEADS // key_heads, axis=1)
    v = np.repeat(held("v", BATCH, key_heads, columns, value_depth), HEADS // key_heads, axis=1)
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(depth)
    if operation.cap is not None:
        scores = operation.cap * np.tanh(scores / operation.cap)
    if "m" in memory:
        mask = held("m", BATCH, 1, rows, columns)
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if operation.causal:
        scores = np.where(np.arange(columns) <= np.arange(rows)[:, None], scores, -np.inf)
    highest = scores.max(-1, keepdims=True)
    powers = np.exp(scores - np.where(highest == -np.inf, 0, highest))
    total = powers.sum(-1, keepdims=True)
    return 2 * (powers / np.where(highest == -np.inf, 1, total) @ v).transpose(0, 2, 1, 3)


CASES = {
    "f16, symbolic rows": (attention, (F16, S, 70, 64, 64), {}, 37),
    "f32, bool mask, odd depths, grouped": (
        attention, (F32, 33, 70, 40, 24), {"mask": BOOL, "key_heads": 2}, 33,
    ),
    "bf16, causal, one key head": (
        attention, (BF16, 70, 70, 64, 64), {"causal": True, "key_heads": 1}, 70,
    ),
    "f16, few rows, additive mask": (attention, (F16, 5, 130, 128, 128), {"mask": F16}, 5),
    "f64, causal": (attention, (F64, 20, 40, 32, 32), {"causal": True}, 20),
    "one row, one column": (attention, (F16, 1, 1, 16, 16), {}, 1),
    "f16, capped, causal": (
        attention, (F16, 70, 70, 64, 64), {"cap": 2.0, "causal": True, "key_heads": 2}, 70,
    ),
    "bf16, capped, additive mask": (
        attention, (BF16, 33, 70, 64, 64), {"cap": 30.0, "mask": F32}, 33,
    ),
    "f16, capped far off": (attention, (F16, 9, 70, 32, 32), {"cap": 3e3}, 9),
    "f32, capped, bool mask": (attention, (F32, 33, 70, 40, 24), {"cap": 0.5, "mask": BOOL}, 33),
    "f64, capped": (attention, (F64, 20, 40, 32, 32), {"cap": 1.5}, 20),
    "f16, capped, few rows": (attention, (F16, 5, 1300, 64, 64), {"cap": 50.0, "key_heads": 1}, 5),
    "f32, deep heads": (attention, (F32, 40, 70, 256, 200), {"mask": F32, "key_heads": 2}, 40),
    "f32, deep heads, causal, capped": (
        attention, (F32, 70, 70, 136, 256), {"causal": True, "cap": 2.0}, 70,
    ),
    "f32, deep heads, few rows": (attention, (F32, 3, 1100, 256, 256), {"key_heads": 1}, 3),
    "f64, deep heads": (attention, (F64, 20, 40, 128, 128), {}, 20),
    "f16, deep heads": (attention, (F16, 9, 40, 256, 256), {}, 9),
}  # fmt: skip
BOUND = {F16: 2e-3, BF16: 2e-2, F32: 2e-6, F64: 1e-14}


@pytest.mark.long(but=3)
@pytest.mark.full(but=["f16, symbolic rows"])
@pytest.mark.parametrize("name", CASES)
def test_attention_gives_what_numpy_gives(name: str) -> None:
    make, args, kwargs, rows = CASES[name]
    made = make(*args, **kwargs)
    rng = np.random.default_rng(7)
    bindings = {"s27": rows}
    memory = {n: random_memory(rng, b, bindings) for n, b in made.lowered.buffers.items()}
    if made.operation.mask is not None and args[0] is F32:
        memory["m"][:70] = False  # the whole first row
    want = reference(memory, made, rows).ravel()
    caller = made.generate(made.default_config())
    deep = made.operation.value_depth.size == 256  # gfx1100 takes B's tiles one by one then
    for target in ("cpu", f"cpu-gfx{1100 if deep else 1030 if rows > 20 else 1201}"):
        got = from_device(run(caller, memory, bindings, target)["o"], args[0])
        assert np.abs(got - want).max() <= BOUND[args[0]] * (2 if "deep" in name else 1), target


def test_a_row_without_any_column_gives_zeros() -> None:
    made = attention(F32, 3, 5, 16, 16, mask=BOOL)
    rng = np.random.default_rng(8)
    memory = {n: random_memory(rng, b, {}) for n, b in made.lowered.buffers.items()}
    memory["m"][:] = False
    assert (run(made.generate(made.default_config()), memory, {"s27": 1})["o"] == 0).all()


@pytest.mark.full
def test_a_row_without_any_column_gives_nan_where_a_softmax_does() -> None:
    for dtype, columns in ((F32, 5), (F16, 2000)):
        made = attention(dtype, 3, columns, 16, 16, mask=BOOL, safe=False)
        rng = np.random.default_rng(8)
        memory = {n: random_memory(rng, b, {}) for n, b in made.lowered.buffers.items()}
        mask = memory["m"].reshape(BATCH, 3, columns)
        mask[:] = True
        mask[:, 1] = False
        got = from_device(run(made.generate(made.default_config()), memory, {"s27": 1})["o"], dtype)
        rows = got.reshape(BATCH, 3, HEADS, 16)
        assert np.isnan(rows[:, 1]).all()
        assert np.isfinite(rows[:, ::2]).all()


@pytest.mark.long(but=3)
@pytest.mark.full
@pytest.mark.parametrize("options", [{"safe": False}, {"safe": False, "cap": 30.0}, {}])
def test_a_row_that_f32s_least_number_hides_averages_all_columns(options: dict) -> None:
    for dtype, rows, columns, hidden in ((F32, 4, 140, 140), (BF16, 3, 1300, 64)):
        made = attention(dtype, rows, columns, 32, 32, mask=F32, **options)
        rng = np.random.default_rng(8)
        memory = {n: random_memory(rng, b, {}) for n, b in made.lowered.buffers.items()}
        mask = np.zeros((BATCH, rows, columns), np.float32)
        least = np.finfo(np.float32).min / 256  # as lowering bounds it
        mask[:, 0], mask[:, 1, :hidden], mask[:, 2, columns // 2 :] = least, least, -np.inf
        memory["m"] = mask.ravel()
        want = reference(memory, made, rows).ravel()
        for target in ("cpu", "cpu-gfx1201"):
            caller = made.generate(made.default_config())
            got = from_device(run(caller, memory, {"s27": 1}, target)["o"], dtype)
            assert np.abs(got - want).max() <= BOUND[dtype], target


@pytest.mark.long
def test_every_configuration_that_serves_agrees() -> None:
    made = attention(F16, 40, 45, 32, 48, causal=True)
    rng = np.random.default_rng(9)
    memory = {n: random_memory(rng, b, {}) for n, b in made.lowered.buffers.items()}
    want = reference(memory, made, 40).ravel()
    serving = [config for config in made.configs() if made.reject(config) is None]
    assert len(serving) >= 4
    for config in serving:
        got = from_device(run(made.generate(config), memory, {"s27": 1})["o"], F16)
        assert np.abs(got - want).max() <= 2e-3, config


def test_what_does_not_fit_lds_is_rejected() -> None:
    made = attention(F32, 40, 40, 128, 128)
    rejected = made.reject({"block_m": 128, "block_n": 64, "threads": 256, "splits": 1})
    assert rejected is not None
    assert "bytes of LDS exceed the limit of 65536 per block" in rejected.reason
    assert made.reject(made.default_config()) is None


@pytest.mark.full(but=["gfx90a"])
@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1201"])
def test_defaults_use_matrix_instructions_and_do_not_spill(target: str) -> None:
    node, lowered = attention_node(F16, S, 512, 64, 64)
    made = AttentionTemplate(node, lowered, (targets.find(target),))
    caller = made.generate(made.default_config())
    build = compiled(caller, target)
    for resources in build.resources.values():
        assert resources["vgpr_spills"] == resources["scratch_bytes"] == 0
    found = [resources["lds_bytes"] for resources in build.resources.values()]
    assert max(found) == caller.kernel.launches[0].lds_bytes
    listing = (build.directory / "kernel.s").read_text()
    family = amd_hardware(targets.find(target)).matrix
    assert ("v_mfma" in listing) == (family == "mfma")
    assert ("v_wmma" in listing) == (family == "wmma")
