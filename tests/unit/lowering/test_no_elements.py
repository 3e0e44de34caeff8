"""Ops on empty dimensions: what torch computes is computed, and where it raises 0 is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scheduler import pipeline
from scheduler.ir.index.functions import is_unbacked
from scheduler.targets import find
from tests.unit.torch_export import as_module, export

torch = pytest.importorskip("torch")

#: Of a matrix whose number of rows depends on data.
OPS: dict[str, Callable[[Any], Any]] = {
    "amax": lambda x: x.amax(0),
    "amin of all": lambda x: x.amin((0, 1)),
    "amax of rows": lambda x: x.amax(1),
    "max": lambda x: x.max(),
    "min and its place": lambda x: tuple(x.min(0)),
    "argmax": lambda x: x.argmax(0),
    "argmin of all": lambda x: x.argmin(),
    "argmax of rows": lambda x: x.argmax(1),
    "both extremes": lambda x: tuple(x.aminmax(dim=0)),
    "amax of truth values": lambda x: (x > 0).amax(0),
    "amax of all, flattened": lambda x: x.reshape(-1).amax(0),
    "amax of twice as many": lambda x: torch.cat([x, x]).amax(0),
    "greatest magnitude": lambda x: torch.linalg.vector_norm(x, float("inf"), dim=0),
    "norm": lambda x: torch.linalg.vector_norm(x, 2, dim=0),
    "median": lambda x: x.median(),
    "medians": lambda x: tuple(x.median(0)),
    "medians without NaN": lambda x: tuple(x.nanmedian(0)),
    "mode": lambda x: tuple(x.mode(0)),
    "quantile": lambda x: x.quantile(0.5, dim=0),
    "sum": lambda x: x.sum(0),
    "mean": lambda x: x.mean(0),
    "deviation": lambda x: x.std(0),
    "softmax": lambda x: x.softmax(0),
    "any": lambda x: (x > 0).any(0),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in {"argmax", "sum"} else pytest.mark.full) for n in OPS],
)
def test_an_empty_dimension_is_refused_where_torch_raises(name: str, tmp_path: Path) -> None:
    op = OPS[name]
    try:
        op(torch.empty(0, 3))
        least = 0
    except (IndexError, RuntimeError):
        least = 1
    _, graph = export(as_module(lambda x: op(x[x[:, 0] > 0])), (torch.rand(5, 3),), tmp_path)
    plan = pipeline.schedule(pipeline.lower(graph))
    symbols = pipeline.generate(plan, [find("cpu")]).manifest().symbols
    assert {info.minimum for size, info in symbols.items() if is_unbacked(size)} == {least}
