"""The reference's outputs beside torch's own run of the same file."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler import untrusted
from scheduler.benchmark import torch_oracle
from scheduler.frontends import pt2
from scheduler.ir.graph import ConstantOutput
from tests.unit.torch_export import as_module, export

torch = pytest.importorskip("torch")

from torch.utils import _pytree  # noqa: E402


class Tied(torch.nn.Module):  # type: ignore[misc]
    """Weights that share memory, a buffer and an input that are written, sizes that are not
    known, and f16."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(11, 8)
        self.head = torch.nn.Linear(8, 11)
        self.head.weight = self.embedding.weight
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, ids: Any, x: Any) -> Any:
        self.calls += 1
        x.mul_(0.5)
        return self.head(self.embedding(ids) + x).half(), ids.T


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rows = torch.export.Dim("rows", min=2, max=64)
    args = (torch.zeros(4, dtype=torch.int64), torch.rand(4, 8))
    export(Tied(), args, tmp_path, dynamic_shapes={"ids": {0: rows}, "x": {0: rows}})
    return tmp_path / "model.pt2"


def bindings(file: Path, rows: int) -> dict[str, int]:
    return dict.fromkeys(pt2.read(file).symbols, rows)


@pytest.mark.parametrize("rows", [2, 7])
def test_a_model_with_effects_agrees(file: Path, rows: int) -> None:
    found = torch_oracle.compare_with_torch(file, bindings(file, rows))
    assert {one.name for one in found} == {f"torch {torch.__version__.partition('+')[0]}"}
    assert {"x", "b_calls"} < {one.output for one in found}
    assert len(found) == 4
    assert [one.detail for one in found if not one.passed] == []


_LEAVES = ["add", "input", "size", "sum", 3, 2**40, 2.5, float("-inf"), True, None]


@st.composite
def structures(draw: st.DrawFn) -> Any:
    """What a model may return: tensors, sizes and constants, nested in torch's containers."""
    leaf = st.sampled_from(_LEAVES)
    return draw(
        st.recursive(
            leaf,
            lambda parts: st.one_of(
                st.lists(parts, min_size=1, max_size=3),
                st.lists(parts, min_size=1, max_size=3).map(tuple),
                st.dictionaries(st.sampled_from("zab"), parts, min_size=1, max_size=3),
            ),
            max_leaves=6,
        )
    )


@pytest.mark.full
@settings(deadline=None, max_examples=15)
@given(structures())
def test_constants_are_returned_where_torch_returns_them(structure: Any) -> None:
    def model(x: Any) -> Any:
        made = {"add": x + 1, "input": x, "size": x.shape[0], "sum": x.shape[0] + x.shape[1]}
        return _pytree.tree_map(lambda leaf: made.get(leaf, leaf), structure)

    dims = (torch.export.Dim.DYNAMIC, torch.export.Dim.DYNAMIC)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.pt2"
        _, graph = export(
            as_module(model), (torch.rand(4, 5),), file.parent, dynamic_shapes=((dims,),)
        )
        found = torch_oracle.compare_with_torch(file, dict(zip(graph.symbols, (6, 7), strict=True)))
    assert [(one.output, one.detail) for one in found if not one.passed] == []
    assert len(found) == len(_pytree.tree_leaves(structure))


@pytest.mark.parametrize("wrong", [3.0, True, None, 4])
def test_a_constant_that_is_another_differs(
    wrong: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, graph = export(as_module(lambda x: (x + 1, 3)), (torch.rand(4),), tmp_path)
    misread = replace(graph, constant_outputs=(ConstantOutput(1, wrong),))
    monkeypatch.setattr(pt2, "read", lambda _: misread)
    found = torch_oracle.compare_with_torch(tmp_path / "model.pt2", {})
    (differs,) = (one for one in found if not one.passed)
    assert (differs.output, differs.detail) == (
        "constant 1",
        f"check: torch returns 3, Kiln {wrong}",
    )


class Buffers(torch.nn.Module):  # type: ignore[misc]
    """Parameters, a constant, and a buffer of each kind: kept with the weights, and beside them."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 4, dtype=torch.bfloat16)
        self.register_buffer("scale", torch.rand(4, 1).T)
        self.register_buffer("frequencies", torch.rand(4), persistent=False)
        self.shift = torch.rand(4)

    def forward(self, x: Any) -> Any:
        return self.linear(x.bfloat16()) * self.scale + self.frequencies + self.shift


@pytest.mark.parametrize("module", [Buffers, Tied])
def test_a_file_without_its_weights_is_compared(module: Any, tmp_path: Path) -> None:
    """As the samples are: torch's own reader does not take them."""
    ids = (torch.zeros(4, dtype=torch.int64),) if module is Tied else ()
    export(module(), (*ids, torch.rand(4, 8)), tmp_path)
    bare = tmp_path / "bare.pt2"
    with zipfile.ZipFile(tmp_path / "model.pt2") as whole, zipfile.ZipFile(bare, "w") as kept:
        for name in whole.namelist():
            folder, _, last = name.partition("/")[2].rpartition("/")
            if last.endswith(".json") or not folder.startswith("data/"):
                kept.writestr(name, whole.read(name))
    found = torch_oracle.compare_with_torch(bare, {})
    assert [one.passed for one in found] == [True] * (4 if module is Tied else 1)


def _swapped(graph: Any) -> Any:
    """What a reader that mistakes outputs for each other would make of a file."""
    first, second, *rest = graph.outputs
    return replace(graph, outputs=(second, first, *rest))


def _unwritten(graph: Any) -> Any:
    """Without its last output, which is the new value of a buffer."""
    return replace(graph, outputs=graph.outputs[:-1], output_specs=graph.output_specs[:-1])


def _cut(graph: Any) -> Any:
    """Without one of the outputs that the model returns."""
    place = graph.returned_outputs[-1]
    outputs, specs = list(graph.outputs), list(graph.output_specs)
    del outputs[place], specs[place]
    return replace(graph, outputs=tuple(outputs), output_specs=tuple(specs))


@pytest.mark.parametrize("mistake", [_swapped, _unwritten, _cut])
def test_a_misreading_of_the_file_is_seen(
    file: Path, mistake: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = mistake(pt2.read(file))
    monkeypatch.setattr(torch_oracle.pt2, "read", lambda _: graph)
    found = torch_oracle.compare_with_torch(file, bindings(file, 4))
    assert any(one.passed is False for one in found)


def test_what_torch_writes_is_not_what_the_reference_is_given(tmp_path: Path) -> None:
    """An input of a type that both sides have alike."""
    args = (torch.arange(6), torch.rand(6, dtype=torch.float64))
    export(as_module(lambda n, x: (n.add_(1), x.mul_(2.0))), args, tmp_path)
    found = torch_oracle.compare_with_torch(tmp_path / "model.pt2", {})
    assert [one.detail for one in found if not one.passed] == []


def test_what_draws_random_numbers_is_not_checked(tmp_path: Path) -> None:
    export(as_module(lambda x: x * torch.rand_like(x)), (torch.rand(3),), tmp_path)
    (drawn,) = torch_oracle.compare_with_torch(tmp_path / "model.pt2", {})
    assert drawn.passed is None
    assert "draws random numbers" in drawn.detail


@pytest.mark.full
def test_a_file_of_anybody_is_compared_behind_the_fence(file: Path) -> None:
    """torch's import and its reader work there."""
    found = untrusted.compare_with_torch(file, bindings(file, 4), untrusted.Limits(seconds=600))
    assert [one["passed"] for one in found] == [True] * 4
