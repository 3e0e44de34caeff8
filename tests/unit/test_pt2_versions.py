"""Files that torch 2.4 to 2.15 wrote are read, and compute what torch computes today."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler.frontends.pt2 import read
from scheduler.ir.graph import Graph, InputKind
from scheduler.lowering import lower
from scheduler.reference import run

pytest.importorskip("torch")

import torch

from tests.unit.pt2_versions import make

FOLDER = Path(make.__file__).parent
FILES = sorted(FOLDER.glob("*.pt2"))


def test_every_version_is_there() -> None:
    versions = {tuple(map(int, file.name.split("_")[0].split(".")[:2])) for file in FILES}
    assert versions >= {(2, minor) for minor in range(4, 16)}
    assert len(FILES) == len(versions) * len(make.MODELS)


def _values(graph: Graph, model: Any, args: tuple[Any, ...]) -> dict[str, Any]:
    given = iter(torch.utils._pytree.tree_leaves(args))
    states = dict(model.state_dict())
    tensors = {
        one.name: next(given) if one.kind is InputKind.USER else states[one.source_name]
        for one in graph.inputs
    }
    return {name: tensor.numpy() for name, tensor in tensors.items()}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_is_read_and_right(file: Path) -> None:
    builder, _ = make.MODELS[file.stem.partition("_")[2]]
    model, args, _ = builder()
    graph = read(file)
    assert lower(graph).operations
    values = _values(graph, model, args)
    sizes = {name: info.hint for name, info in graph.symbols.items()}
    assert set(sizes.values()) <= {2, 6}
    made = run(graph, values, sizes)
    with torch.no_grad():
        expected = torch.utils._pytree.tree_leaves(model(*args))
    for place, tensor in zip(graph.returned_outputs, expected, strict=True):
        np.testing.assert_allclose(made[graph.outputs[place]], tensor, rtol=1e-5, atol=1e-5)
    written = {values_of.input: made[values_of.value] for values_of in graph.mutations}
    states = {one.name: model.state_dict().get(one.source_name) for one in graph.inputs}
    assert {name: int(value) for name, value in written.items()} == {
        name: int(states[name]) for name in written
    }
    assert len(written) == (1 if hasattr(model, "calls") else 0)
