"""Attention of few queries, whose keys several blocks share, and what is no number in its rows."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler import targets
from scheduler.codegen.rocm.attention.template import AttentionTemplate
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import SymbolInfo
from tests.support.memory import from_device, to_device
from tests.unit.codegen.loopnest import random_memory, run
from tests.unit.codegen.test_attention_kernels import BATCH, HEADS, S, attention_node, reference

F32, F16, BF16, BOOL = DType.F32, DType.F16, DType.BF16, DType.BOOL
LONG = SymbolInfo("s27", 4096, 1, 5000)


def made_for(target: str, *args: object, **kwargs: object) -> AttentionTemplate:
    node, lowered = attention_node(*args, **kwargs)
    return AttentionTemplate(node, lowered, (targets.find(target),))


SHARED = {
    "f16, three rows": (F16, 3, 700, 64, 64, {}, 4),
    "bf16, odd depths, causal, blocks without keys": (BF16, 40, 200, 33, 17, {"causal": True}, 16),
    "f32, mask": (F32, 2, 530, 40, 24, {"mask": BOOL, "key_heads": 2}, 4),
}


@pytest.mark.long(but=3)
@pytest.mark.full(but=["f16, three rows-cpu"])
@pytest.mark.parametrize("target", ["cpu", "cpu-gfx1100"])
@pytest.mark.parametrize("name", SHARED)
def test_blocks_that_share_keys_give_what_one_gives(name: str, target: str) -> None:
    dtype, rows, columns, depth, value_depth, more, splits = SHARED[name]
    emulated = "gfx942" if target == "cpu" else target.removeprefix("cpu-")
    made = made_for(emulated, dtype, rows, columns, depth, value_depth, **more)
    rng = np.random.default_rng(3)
    memory = {n: random_memory(rng, b, {}) for n, b in made.lowered.buffers.items()}
    want = reference(memory, made, rows).ravel()
    config = {"block_m": 32, "block_n": 32, "threads": 64, "splits": splits}
    caller = made.generate(config)
    assert len(caller.kernel.launches) == 2
    results = [run(caller, memory, {"s27": 1}, target)["o"] for _ in range(2)]
    bound = {F16: 2e-3, BF16: 2e-2, F32: 2e-6}[dtype]
    assert np.abs(from_device(results[0], dtype) - want).max() <= bound
    assert (results[0] == results[1]).all()


def test_the_default_shares_keys_where_rows_are_few() -> None:
    splits = {}
    for target in ("gfx942", "gfx1100", "sm_90"):
        one = made_for(target, F16, 1, S, 128, 128, info=LONG).default_config()
        splits[target] = int(one["splits"])
    assert splits.pop("gfx942") >= 16
    assert splits == {"gfx1100": 32, "sm_90": 16}
    many = made_for("gfx942", F16, S, S, 128, 128, info=LONG).default_config()
    assert (many["block_m"], many["splits"]) == (128, 1)


def _softmax_of_row(scores: np.ndarray, values: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        powers = np.exp(scores - scores.max())
        return powers / powers.sum() @ values


@pytest.mark.long(but=4)
@pytest.mark.full(but=["1-cpu"])
@pytest.mark.parametrize("target", ["cpu", "cpu-gfx1201", "cpu-gfx1030"])
@pytest.mark.parametrize("splits", [1, 4])
def test_what_is_no_number_stays_in_its_row(target: str, splits: int) -> None:
    """As torch: a score that is NaN or plus infinity makes its row NaN, one that is minus
    infinity counts for nothing, also where it comes first."""
    emulated = "gfx942" if target == "cpu" else target.removeprefix("cpu-")
    rows, columns, depth = 6, 150, 32
    made = made_for(emulated, F16, rows, columns, depth, depth, mask=F32, plain=True, scale=0.25)
    rng = np.random.default_rng(5)
    memory = {n: random_memory(rng, b, {}) for n, b in made.lowered.buffers.items()}
    mask = np.zeros((BATCH, rows, columns), np.float32)
    mask[:, 0, 140] = np.nan
    mask[:, 1, 3] = np.inf
    mask[:, 2, :145] = -np.inf
    mask[:, 3] = -np.inf
    mask[:, 4] = np.linspace(-300, 300, columns)  # the maximum grows from tile to tile
    memory["m"] = to_device(mask, F32).ravel()
    config = {"block_m": 32, "block_n": 32, "threads": 64, "splits": splits}
    got = from_device(run(made.generate(config), memory, {"s27": 1}, target)["o"], F16)
    got = got.reshape(BATCH, rows, HEADS, depth)
    assert np.isnan(got[:, 0]).all()
    assert np.isnan(got[:, 1]).all()
    assert (got[:, 3] == 0).all()
    q, k, v = (from_device(memory[name], F16) for name in "qkv")
    q = q.reshape(BATCH, rows, HEADS, depth)
    k, v = (x.reshape(BATCH, HEADS, columns, depth) for x in (k, v))
    for row in (2, 4, 5):
        for batch, head in np.ndindex(BATCH, HEADS):
            scores = k[batch, head] @ q[batch, row, head] * 0.25 + mask[batch, row]
            want = _softmax_of_row(scores, v[batch, head])
            assert np.abs(got[batch, row, head] - want).max() <= 2e-3, (row, batch, head)
