"""Assertions of a model about its data: a bundle raises where torch raises."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler import pipeline
from scheduler.benchmark.verification import rebuild_schedule, run_once
from scheduler.bundle.reader import open_bundle
from scheduler.errors import UserError
from scheduler.runtime.devices import open_device
from tests.support.exported_kernels import bundle_of
from tests.unit.torch_export import as_module, export

torch = pytest.importorskip("torch")


def number(x: Any) -> Any:
    n = x[0].to(torch.int64).item()
    torch._check(n >= 2)
    torch._check(n != 3)
    return x + n


def sum_of(x: Any) -> Any:
    total = x.sum().item()
    torch._check(total > 0)
    return x * total


def all_of(x: Any) -> Any:
    torch.ops.aten._assert_async.msg((x > 0).all(), "every element must be positive")
    return x * 2


MODELS: dict[str, Callable[[Any], Any]] = {"number": number, "sum": sum_of, "all": all_of}
INPUTS = ([2.0, 5.0, 1.0], [3.0, 1.0, 1.0], [1.0, 1.0, 1.0], [4.0, -9.0, 1.0])


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n == "all" else pytest.mark.full) for n in MODELS]
)
def test_it_raises_where_torch_raises(name: str, tmp_path: Path) -> None:
    example = (torch.tensor(INPUTS[0]),)
    program, graph = export(as_module(MODELS[name]), example, tmp_path)
    bundle_of(graph, tmp_path / "bundle")
    bundle = open_bundle(tmp_path / "bundle")
    module, plan = program.module(), rebuild_schedule(bundle)
    (name_of_input,) = (each.name for each in graph.inputs)
    raised = 0
    for values in INPUTS:
        given = np.array(values, np.float32)
        run = partial(run_once, bundle, plan, open_device("cpu"), {}, {name_of_input: given})
        try:
            (expected,) = torch.utils._pytree.tree_leaves(module(torch.from_numpy(given)))
        except RuntimeError:
            raised += 1
            with pytest.raises(UserError, match="an assertion of the model failed: "):
                run()
        else:
            (found,) = run().values.values()
            np.testing.assert_allclose(found, expected.numpy(), rtol=1e-6)
    assert 0 < raised < len(INPUTS)


def test_a_manifest_that_names_no_boolean_is_rejected(tmp_path: Path) -> None:
    _, graph = export(as_module(all_of), (torch.tensor(INPUTS[0]),), tmp_path)
    bundle_of(graph, tmp_path / "bundle")
    path = tmp_path / "bundle" / "manifest.json"
    manifest = json.loads(path.read_text())
    for name, place in ((manifest["assertions"][0]["buffer"], 1), (graph.inputs[0].name, 0)):
        manifest["assertions"][0] |= {"buffer": name, "place": place}
        path.write_text(json.dumps(manifest))
        with pytest.raises(UserError, match=f"{name} has no boolean at {place}"):
            open_bundle(tmp_path / "bundle")


def test_an_assertion_that_holds_at_all_sizes_is_not_computed(tmp_path: Path) -> None:
    def rows(x: Any) -> Any:
        some = x[x > 0]
        torch._check(some.shape[0] < 4)
        return some * 2

    _, graph = export(as_module(rows), (torch.tensor(INPUTS[0]),), tmp_path)
    assert pipeline.lower(graph).assertions == ()
