"""Attention as transformers writes it out for Gemma 2 (``eager``): a soft cap, grouped queries,
windows. Exported here and now, it is one operation, and its kernel gives what torch gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler.fusion import schedule
from scheduler.ir.graph import Graph
from scheduler.ir.operations import Attention, GroupKind
from scheduler.lowering import lower
from tests.support.exported_kernels import outputs_of
from tests.unit.torch_export import agree, export, inputs_of

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional


class Gemma2Attention(nn.Module):  # type: ignore[misc]
    """Without the rotary embedding, which touches neither scores nor weights. ``window``: the mask
    is made of positions here, else it is an input."""

    def __init__(
        self,
        dtype: Any,
        *,
        cap: float | None = 50.0,
        window: int = 0,
        dropout: float = 0.0,
        softmax: Any = torch.float32,
    ) -> None:
        super().__init__()
        self.softmax = softmax
        self.heads, self.key_heads, self.depth = 4, 2, 16
        self.cap, self.window, self.dropout = cap, window, dropout
        generator = torch.Generator().manual_seed(3)

        def linear(inner: int, outer: int) -> Any:
            made = nn.Linear(inner, outer, bias=False, dtype=dtype)
            values = torch.randn(outer, inner, generator=generator, dtype=torch.float64) / 3
            made.weight = nn.Parameter(values.to(dtype))
            return made

        self.q_proj = linear(24, self.heads * self.depth)
        self.k_proj = linear(24, self.key_heads * self.depth)
        self.v_proj = linear(24, self.key_heads * self.depth)
        self.o_proj = linear(self.heads * self.depth, 24)

    def repeated(self, x: Any) -> Any:
        batch, heads, length, depth = x.shape
        times = self.heads // self.key_heads
        wide = x[:, :, None].expand(batch, heads, times, length, depth)
        return wide.reshape(batch, heads * times, length, depth)

    def forward(self, x: Any, mask: Any = None) -> Any:
        batch, length, _ = x.shape
        q, k, v = (
            part(x).view(batch, length, -1, self.depth).transpose(1, 2)
            for part in (self.q_proj, self.k_proj, self.v_proj)
        )
        k, v = self.repeated(k), self.repeated(v)
        scores = torch.matmul(q, k.transpose(2, 3)) * self.depth**-0.5
        if self.cap is not None:
            scores = torch.tanh(scores / self.cap) * self.cap
        if self.window:
            row, column = torch.arange(length)[:, None], torch.arange(length)[None, :]
            seen = (column <= row) & (row - column < self.window)
            mask = torch.where(seen, 0.0, least(scores.dtype)).to(scores.dtype)[None, None]
        if mask is not None:
            scores = scores + mask[:, :, :, : k.shape[-2]]
        weights = F.softmax(scores, dim=-1, dtype=self.softmax).to(q.dtype)
        weights = F.dropout(weights, p=self.dropout, training=self.training)
        attended = torch.matmul(weights, v).transpose(1, 2).contiguous()
        return self.o_proj(attended.reshape(batch, length, -1).contiguous())


def least(dtype: Any) -> float:
    """The number that hides a score."""
    return max(float(torch.finfo(dtype).min), float(torch.finfo(torch.float32).min))


def attentions(graph: Graph) -> list[Attention]:
    """Those of a graph, which are kernels of their own; nothing else has the scores' size."""
    lowered = lower(graph)
    found = [one for one in lowered.operations if isinstance(one, Attention)]
    kinds = [node.kind for node in schedule(lowered).nodes]
    assert kinds.count(GroupKind.ATTENTION) == len(found)
    return found


def mask_of(length: int, dtype: Any) -> Any:
    """Causal, with the first keys left out, as transformers makes it: by the type's least number.
    The first rows see nothing: they average all columns."""
    hidden = torch.triu(torch.ones(length, length), 1).bool()
    hidden = hidden | (torch.arange(length) < 2)
    return torch.where(hidden, least(dtype), 0.0).to(dtype)[None, None]


def randn(dtype: Any, *size: int) -> Any:
    return torch.randn(*size, generator=torch.Generator().manual_seed(7)).to(dtype)


@pytest.mark.full(but=["False"])
@pytest.mark.parametrize("decompose", [False, True])
def test_it_is_one_operation_whatever_the_length(tmp_path: Path, decompose: bool) -> None:
    module = Gemma2Attention(torch.float64)
    length = torch.export.Dim("length", min=2, max=64)
    sizes = ({1: length}, {2: length, 3: length})
    args = (randn(torch.float64, 2, 9, 24), mask_of(9, torch.float64))
    _, graph = export(module, args, tmp_path, decompose=decompose, dynamic_shapes=sizes)
    (found,) = attentions(graph)
    assert (found.cap, found.scale) == (50.0, 0.25)
    assert found.mask is not None


def test_a_window_of_positions_is_seen_as_such(tmp_path: Path) -> None:
    module = Gemma2Attention(torch.float64, window=4, softmax=torch.float64)
    graph = agree(module, (randn(torch.float64, 2, 9, 24),), tmp_path)
    (found,) = attentions(graph)
    assert (found.causal, found.safe) == (True, True)


def test_dropout_while_training_is_no_part_of_it(tmp_path: Path) -> None:
    module = Gemma2Attention(torch.float32, dropout=0.1)
    args = (randn(torch.float32, 1, 8, 24), mask_of(8, torch.float32))
    _, evaluated = export(module, args, tmp_path)
    assert len(attentions(evaluated)) == 1
    _, trained = export(module, args, tmp_path, train=True)
    assert not attentions(trained)


@pytest.mark.long(but=3)
@pytest.mark.full
@pytest.mark.parametrize(
    ("dtype", "cap", "window"),
    [("float16", 2.0, 0), ("bfloat16", 50.0, 5), ("float32", 2.0, 0), ("float32", None, 5)],
)
def test_its_kernels_give_what_torch_gives(
    tmp_path: Path, dtype: str, cap: float | None, window: int
) -> None:
    kind = getattr(torch, dtype)
    module = Gemma2Attention(kind, cap=cap, window=window)
    args = (randn(kind, 2, 37, 24), *([] if window else [mask_of(37, kind)]))
    program, graph = export(module, args, tmp_path)
    assert len(attentions(graph)) == 1
    got = outputs_of(graph, inputs_of(program, graph, args))[graph.outputs[0]]
    with torch.no_grad():
        wide = module.double()(*(arg.double() for arg in args)).numpy()
    bound = {"float16": 4e-3, "bfloat16": 4e-2, "float32": 4e-6}[dtype]
    assert np.abs(got - wide).max() <= bound * np.abs(wide).max()
