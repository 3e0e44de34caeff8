"""Models that write their buffers, their inputs: the new values, read back, beside torch's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scheduler.ir.graph import OutputKind
from scheduler.ir.serialize import graph_from_json, graph_to_json
from tests.unit.torch_export import agree, as_module

torch = pytest.importorskip("torch")
BOTH = pytest.mark.parametrize("decompose", [False, True], ids=["plain", "decomposed"])


def cache() -> Any:
    """A cache that is read before it is written, and after; counters; a write through views."""

    class Cache(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("kept", torch.rand(2, 6, 3, dtype=torch.float64))
            self.register_buffer("calls", torch.tensor(3))
            self.register_buffer("seen", torch.zeros(1, dtype=torch.float64), persistent=False)
            self.register_buffer("still", torch.ones(3, dtype=torch.float64))

        def forward(self, x: Any) -> Any:
            before = self.kept.sum(-1)
            self.kept[:, 1:3] = x
            self.kept.transpose(1, 2)[:, 0].mul_(2).add_(self.still[0])
            self.calls += 1
            self.seen = self.seen + x.sum()
            last = self.kept[:, 4]
            last.copy_(x[:, 0])
            return before, self.kept * self.seen, last, self.calls, self.calls * 2

    return Cache()


@pytest.mark.full(but=["plain"])
@BOTH
def test_a_cache_and_counters(tmp_path: Path, decompose: bool) -> None:
    x = torch.rand(2, 2, 3, dtype=torch.float64)
    graph = agree(cache(), (x,), tmp_path, decompose=decompose)
    sources = {given.name: given.source_name for given in graph.inputs}
    assert {sources[written.input] for written in graph.mutations} == {"kept", "calls", "seen"}
    assert {spec.kind for spec in graph.output_specs if spec.input} == {OutputKind.BUFFER_MUTATION}
    assert graph_from_json(graph_to_json(graph)) == graph


@BOTH
def test_inputs_of_the_user(tmp_path: Path, decompose: bool) -> None:
    def f(x: Any, y: Any, z: Any, w: Any) -> Any:
        kept = x.clone()
        x.mul_(2)
        y[0] = x[1]
        z.zero_()  # never read
        x.view(6).unsqueeze(0)[:, 2:4].add_(y.view(6)[:2])
        w.add_(1).relu_()
        kept.add_(1)
        return x + y, kept, w

    args = [torch.rand(2, 3, dtype=torch.float64) for _ in range(4)]
    graph = agree(as_module(f), tuple(args), tmp_path, decompose=decompose)
    assert [written.input for written in graph.mutations] == [f"args_{i}" for i in range(4)]
    assert len(graph.returned_outputs) == 3


@BOTH
def test_two_inputs_that_are_exchanged(tmp_path: Path, decompose: bool) -> None:
    def f(x: Any, y: Any) -> Any:
        kept = x.clone()
        x.copy_(y)
        y.copy_(kept)

    args = (torch.rand(3, dtype=torch.float64), torch.rand(3, dtype=torch.float64))
    graph = agree(as_module(f), args, tmp_path, decompose=decompose)
    assert (len(graph.returned_outputs), len(graph.mutations)) == (0, 2)


def test_the_statistics_of_instance_norm(tmp_path: Path) -> None:
    class Norm(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            options = {"track_running_stats": True, "dtype": torch.float64}
            self.norm = torch.nn.InstanceNorm1d(3, **options)

        def forward(self, x: Any) -> Any:
            return self.norm(x) + self.norm(x * 2)

    graph = agree(Norm(), (torch.rand(2, 3, 5, dtype=torch.float64),), tmp_path, train=True)
    sources = {given.name: given.source_name for given in graph.inputs}
    written = {sources[each.input] for each in graph.mutations}
    assert written == {"norm.running_mean", "norm.running_var"}


def test_a_model_that_writes_nothing_says_nothing_of_it(tmp_path: Path) -> None:
    """Its own temporaries are nobody's input; its digest is what it always was."""

    def f(x: Any) -> Any:
        y = x + 1
        y.mul_(2)
        x.reshape(3, 2).transpose(0, 1).reshape(6).add_(1)  # a copy of the input
        return y

    graph = agree(as_module(f), (torch.rand(2, 3, dtype=torch.float64),), tmp_path)
    assert graph.output_specs == ()
    assert "output_specs" not in graph_to_json(graph)
