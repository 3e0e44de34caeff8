"""Running results of one constant need no kernel: of positions that are an arange every token is in
the same packed sequence, and attention sees what its indices say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scheduler import pipeline, samples
from scheduler.codegen.attention_window import Limit, Window
from scheduler.ir.dtypes import DType
from scheduler.ir.graph import Ref
from scheduler.ir.index.functions import as_expr
from scheduler.ir.operations import Attention, Scan
from scheduler.lowering import lower
from tests.unit.lowering.graphs import GraphBuilder
from tests.unit.lowering.running import run_lowered
from tests.unit.torch_export import agree, as_module

DECODERS = ("gpt2_124m", "gpt2_2layer", "llama3_8b_1layer", "llama_2layer")


@pytest.mark.parametrize("name", DECODERS)
def test_decoders_see_up_to_their_own_token_without_a_mask_in_memory(name: str) -> None:
    plan = pipeline.schedule(pipeline.lower(pipeline.load(samples.path(name))))
    members = [member for node in plan.nodes for member in node.members]
    assert not any(isinstance(member, Scan) for member in members)
    for attention in (one for one in members if isinstance(one, Attention)):
        assert Window.create(attention) == Window((Limit(True, 1, as_expr(0)),), is_complete=True)


@pytest.mark.parametrize(
    ("target", "value", "scans"),
    [
        ("cumsum", 0.0, 0),
        ("cumsum", 2.0, 1),
        ("cumsum", float("nan"), 1),
        ("cumprod", 1.0, 0),
        ("cumprod", 0.0, 0),
        ("cumprod", -1.0, 1),
        ("logcumsumexp", 0.0, 1),
    ],
)
def test_what_one_constant_runs_up_to(target: str, value: float, scans: int) -> None:
    b = GraphBuilder()
    x = b.input(np.ones((2, 5)), DType.F64)
    constant = b.call("aten.full_like.default", Ref(x), value)
    graph = b.graph(b.call(f"aten.{target}.default", Ref(constant), 1))
    lowered = lower(graph)
    assert sum(isinstance(one, Scan) for one in lowered.operations) == scans
    inputs = {one.name: b.values[one.name] for one in b.inputs}
    for name, found in run_lowered(lowered, inputs, {}).items():
        np.testing.assert_allclose(found, b.values[name])


def test_packed_sequences_are_told_apart_where_positions_begin_anew(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    def attend(q: object, k: object, v: object, positions: object) -> tuple[object, object]:
        found = []
        for place in (torch.arange(q.shape[2])[None], positions):
            step = torch.diff(place, prepend=place[:, :1] - 1, dim=-1)
            which = (step != 1).cumsum(-1)
            row, column = torch.arange(q.shape[2])[:, None], torch.arange(q.shape[2])
            mask = (which[:, :, None] == which[:, None, :]) & (column <= row)
            found.append(torch.nn.functional.scaled_dot_product_attention(q, k, v, mask[:, None]))
        return tuple(found)

    generator = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(2, 2, 7, 8, generator=generator, dtype=torch.float64) for _ in "qkv")
    positions = torch.tensor([[0, 1, 2, 0, 1, 2, 3], [0, 1, 0, 1, 0, 0, 1]])
    agree(as_module(attend), (q, k, v, positions), tmp_path)
