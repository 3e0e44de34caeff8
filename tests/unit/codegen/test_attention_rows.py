"""Attention of few queries whose heads share keys: they become rows of one tile."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.codegen.rocm.attention.template import AttentionTemplate
from scheduler.ir.dtypes import DType
from tests.support.memory import from_device
from tests.unit.codegen.loopnest import random_memory, run
from tests.unit.codegen.test_attention_kernels import HEADS, S, reference
from tests.unit.codegen.test_attention_splits import LONG, made_for

F32, F16, BF16, BOOL = DType.F32, DType.F16, DType.BF16, DType.BOOL


def _blocks(made: AttentionTemplate) -> tuple[int, int]:
    """Rows and batch entries, as the kernel walks them."""
    operation = made.operation
    return int(operation.row.size), int(np.prod([int(axis.size) for axis in operation.batch]))


CASES = {
    "one query, two heads a key": (F16, 1, 300, 64, {"key_heads": 2}, (2, 4)),
    "three queries, mask, one key head": (BF16, 3, 130, 48, {"key_heads": 1, "mask": F32}, (12, 2)),
    "a key head each": (F16, 2, 70, 32, {}, (2, 8)),
    "f32, two queries": (F32, 2, 90, 32, {"key_heads": 2, "mask": BOOL}, (4, 4)),
    "causal": (F16, 2, 70, 32, {"key_heads": 1, "causal": True}, (2, 8)),
}


@pytest.mark.long(but=3)
@pytest.mark.full(but=["cpu-one query, two heads a key"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("target", ["cpu", "cpu-gfx1201"])
def test_heads_that_share_keys_give_what_each_gives(name: str, target: str) -> None:
    dtype, rows, columns, depth, more, walked = CASES[name]
    emulated = "gfx942" if target == "cpu" else target.removeprefix("cpu-")
    made = made_for(emulated, dtype, rows, columns, depth, depth, **more)
    assert _blocks(made) == walked
    rng = np.random.default_rng(11)
    memory = {n: random_memory(rng, b, {}) for n, b in made.lowered.buffers.items()}
    want = reference(memory, made, rows).ravel()
    for splits in (1, 4):
        config = {"block_m": 32, "block_n": 32, "threads": 64, "splits": splits}
        got = from_device(run(made.generate(config), memory, {"s27": 1}, target)["o"], dtype)
        bound = {F16: 2e-3, BF16: 2e-2, F32: 2e-6}[dtype]
        assert np.abs(got - want).max() <= bound, splits


def test_many_or_symbolic_queries_stay_as_they_are() -> None:
    for rows in (32, S):
        made = made_for("gfx942", F16, rows, 128, 64, 64, key_heads=1, info=LONG)
        assert [int(axis.size) for axis in made.operation.batch][-1] == HEADS


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "sm_90"])
def test_one_query_of_bf16_reads_the_next_tile_meanwhile(target: str) -> None:
    made = made_for(target, BF16, 1, 65536, 128, 128, key_heads=1)
    config = made.default_config()
    assert config["block_m"] == 32
    assert config["splits"] > 1
    assert "values.fetch(next_column" in made.generate(config).kernel.source
