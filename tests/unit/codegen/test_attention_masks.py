"""Masks of attention: windows whose empty tiles are skipped, and masks that are read in packs."""

from __future__ import annotations

import numpy as np
import pytest
import sympy

from scheduler import targets
from scheduler.codegen.attention_window import Limit, Window
from scheduler.codegen.rocm.attention.template import AttentionTemplate
from scheduler.ir.dtypes import DType
from scheduler.ir.values import Call, Const, IndexValue, Value
from tests.support.memory import from_device, to_device
from tests.unit.codegen.loopnest import random_memory, run
from tests.unit.codegen.test_attention_kernels import BATCH, HEADS, attention_node

F32, F16, BF16, BOOL, I64 = DType.F32, DType.F16, DType.BF16, DType.BOOL, DType.I64
DEPTH = 32


def _index(expr: sympy.Expr) -> Value:
    return IndexValue(expr, I64)


def _compare(op: str, left: sympy.Expr, right: int | sympy.Expr) -> Value:
    other = Const(right, I64) if isinstance(right, int) else _index(right)
    return Call(op, (_index(left), other), BOOL)


def _both(*parts: Value) -> Value:
    found = parts[0]
    for part in parts[1:]:
        found = Call("logical_and", (found, part), BOOL)
    return found


WINDOWS = {
    "causal, of 20": (
        lambda r, c: _both(_compare("le", c, r), _compare("lt", r - c, 20)),
        lambda r, c: (c <= r) & (r - c < 20),
    ),
    "both sides": (
        lambda r, c: _both(_compare("gt", c, r - 13), _compare("ge", r + 40, c)),
        lambda r, c: (c > r - 13) & (r + 40 >= c),
    ),
    "rows count down": (
        lambda r, c: _compare("le", r + c, 70),
        lambda r, c: r + c <= 70,
    ),
    "a prefix too": (
        lambda r, c: Call(
            "logical_or", (_compare("lt", c, 5), _compare("le", c, r)), BOOL
        ),
        lambda r, c: (c < 5) | (c <= r),
    ),
    "nothing for the last rows": (
        lambda r, c: _compare("ge", c, 2 * r),
        lambda r, c: c >= 2 * r,
    ),
}  # fmt: skip
ROWS, COLUMNS = 75, 110


def _masked(window: object, **more: object) -> tuple[object, object]:
    return attention_node(F16, ROWS, COLUMNS, DEPTH, DEPTH, plain=True, window=window, **more)


def _want(memory: dict, seen: np.ndarray, scale: float) -> np.ndarray:
    q, k, v = (from_device(memory[name], F16).astype(np.float64) for name in "qkv")
    q = q.reshape(BATCH, ROWS, HEADS, DEPTH)
    k, v = (x.reshape(BATCH, HEADS, COLUMNS, DEPTH) for x in (k, v))
    scores = np.einsum("brhd,bhcd->bhrc", q, k) * scale
    powers = np.where(seen, np.exp(np.where(seen, scores, 0)), 0)
    total = powers.sum(-1, keepdims=True)
    weights = powers / np.where(total == 0, 1, total)
    return np.einsum("bhrc,bhcd->brhd", weights, v)


@pytest.mark.long(but=3)
@pytest.mark.full(but=["cpu-0.2-4-causal, of 20"])
@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize(("target", "scale", "splits"), [("cpu", 0.2, 4), ("cpu-gfx1201", -0.2, 1)])
def test_rows_see_what_the_mask_says(name: str, target: str, scale: float, splits: int) -> None:
    tree, numbers = WINDOWS[name]
    emulated = "gfx942" if target == "cpu" else target.removeprefix("cpu-")
    node, lowered = _masked(tree, scale=scale)
    made = AttentionTemplate(node, lowered, (targets.find(emulated),))
    rng = np.random.default_rng(2)
    memory = {n: random_memory(rng, b, {}) for n, b in lowered.buffers.items()}
    rows, columns = np.arange(ROWS)[:, None], np.arange(COLUMNS)
    want = _want(memory, np.broadcast_to(numbers(rows, columns), (ROWS, COLUMNS)), scale).ravel()
    config = {"block_m": 32, "block_n": 32, "threads": 64, "splits": splits}
    got = from_device(run(made.generate(config), memory, {"s27": 1}, target)["o"], F16)
    assert np.abs(got - want).max() <= 2e-3


def test_limits_follow_from_comparisons_of_indices() -> None:
    def window(name: str) -> Window:
        node, _ = _masked(WINDOWS[name][0])
        return Window.create(node.members[0])

    zero, number = sympy.Integer(0), sympy.Integer
    causal = window("causal, of 20")
    assert causal == Window((Limit(True, 1, zero), Limit(False, 1, number(-19))), is_complete=True)
    assert window("rows count down") == Window((Limit(True, -1, number(70)),), is_complete=True)
    assert window("a prefix too") == Window((), is_complete=False)


def test_what_no_row_sees_is_not_walked() -> None:
    node, lowered = _masked(WINDOWS["causal, of 20"][0])
    made = AttentionTemplate(node, lowered, (targets.find("gfx942"),))
    memory = {n: np.zeros_like(random_memory(np.random.default_rng(0), b, {}))
              for n, b in lowered.buffers.items()}  # fmt: skip
    # A NaN among values that no row of a block sees would reach its rows if the tile were read.
    values = np.zeros((BATCH, HEADS, COLUMNS, DEPTH), np.float32)
    values[:, :, :32] = np.nan
    memory["v"] = to_device(values, F16).ravel()
    config = {"block_m": 32, "block_n": 32, "threads": 64, "splits": 1}
    got = from_device(run(made.generate(config), memory, {"s27": 1})["o"], F16)
    assert (got.reshape(BATCH, ROWS, HEADS, DEPTH)[:, 64:] == 0).all()


READ = {
    "f16": (F16, 64, 96, {}, 8),
    "bool, causal": (BOOL, 40, 64, {"causal": True}, 8),
    "f32": (F32, 33, 72, {}, 4),
    "bf16, rows end within a pack": (BF16, 20, 70, {}, 2),
    "of odd rows": (F16, 20, 45, {}, 1),
}


@pytest.mark.full(but=["cpu-f16"])
@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("target", ["cpu", "cpu-gfx1030"])
def test_masks_in_packs_give_what_elements_give(name: str, target: str) -> None:
    dtype, rows, columns, more, pack = READ[name]
    emulated = "gfx942" if target == "cpu" else target.removeprefix("cpu-")
    node, lowered = attention_node(
        BF16, rows, columns, DEPTH, DEPTH, mask=dtype, plain=True, **more
    )
    operation = node.members[0]
    made = AttentionTemplate(node, lowered, (targets.find(emulated),))
    rng = np.random.default_rng(4)
    memory = {n: random_memory(rng, b, {}) for n, b in lowered.buffers.items()}
    mask = from_device(memory["m"], dtype).reshape(BATCH, 1, rows, columns)
    q, k, v = (from_device(memory[n], BF16).astype(np.float64) for n in "qkv")
    k, v = (x.reshape(BATCH, HEADS, columns, DEPTH) for x in (k, v))
    scores = np.einsum("brhd,bhcd->bhrc", q.reshape(BATCH, rows, HEADS, DEPTH), k)
    scores *= operation.scale
    scores = np.where(mask, scores, -np.inf) if dtype is BOOL else scores + mask
    if operation.causal:
        scores = np.where(np.arange(columns) <= np.arange(rows)[:, None], scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    powers = np.exp(scores - np.where(top == -np.inf, 0, top))
    total = powers.sum(-1, keepdims=True)
    want = np.einsum("bhrc,bhcd->brhd", powers / np.where(total == 0, 1, total), v).ravel()
    caller = made.generate({"block_m": 32, "block_n": 32, "threads": 64, "splits": 1})
    assert (f"kPackMask = {pack};" in caller.kernel.source) == (pack > 1)
    got = from_device(run(caller, memory, {"s27": 1}, target)["o"], BF16)
    assert np.abs(got - want).max() <= 2e-2
