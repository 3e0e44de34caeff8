"""Malformed and unsupported models from file to result, as a person meets them: one clear line or
an extern with its reason, never a traceback, never a silent skip."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler.build.cache import CodeCache
from tests.models.test_command_line import scheduler
from tests.unit.test_pt2 import G, _arg, _int, _node, _tensor, _unary, model, write

Document = dict[str, Any]


def _graph(document: Document) -> dict[str, Any]:
    graph: dict[str, Any] = document[G]["graph"]
    return graph


def _with_op(op: str, arguments: list[Any]) -> Document:
    """relu(linear(x)), an op on it, and the exponential of that."""
    document = model()
    graph = _graph(document)
    for name in ("odd", "last"):
        graph["tensor_values"][name] = copy.deepcopy(graph["tensor_values"]["relu"])
    inputs = [_arg("self", _tensor("relu")), *arguments]
    graph["nodes"].append(_node(f"torch.ops.{op}", inputs, [_tensor("odd")], "odd"))
    graph["nodes"].append(_unary("exp", "odd", "last"))
    graph["outputs"] = [_tensor("last")]
    document[G]["signature"]["output_specs"] = [{"user_output": {"arg": _tensor("last")}}]
    return document


def _unknown_dtype(document: Document) -> None:
    _graph(document)["tensor_values"]["relu"]["dtype"] = 99


def _other_shape(document: Document) -> None:
    _graph(document)["tensor_values"]["linear"]["sizes"][1] = _int(5)


def _cycle(document: Document) -> None:
    _graph(document)["nodes"][0]["inputs"][0] = _arg("input", _tensor("relu"))


@pytest.mark.full(but=["_unknown_dtype-relu"])
@pytest.mark.parametrize(
    ("damage", "named"),
    [(_unknown_dtype, "relu"), (_other_shape, "linear"), (_cycle, "relu")],
)
def test_a_model_that_contradicts_itself_is_one_line_that_names_the_node(
    damage: Callable[[Document], None], named: str, tmp_path: Path
) -> None:
    document = model()
    damage(document)
    status, output, errors = scheduler("lower", str(write(tmp_path, document)))
    assert status == 2, errors
    assert output == ""
    assert len(errors.splitlines()) == 1
    assert named in errors


def _compiled(document: Document, cache: CodeCache, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    out = tmp_path / "bundle"
    status, output, errors = scheduler(
        *("compile", str(write(tmp_path, document)), "--target", "cpu", "--json"),
        *("--cache", str(cache.root), "--out", str(out)),
    )
    assert status == 0, errors
    return out, json.loads(output)


@pytest.mark.long
def test_an_op_without_a_kernel_runs_through_the_reference(
    cache: CodeCache, tmp_path: Path
) -> None:
    """A Bessel function: between a matrix product and an exponential, at three sizes."""
    op = "aten.special_bessel_j0.default"
    bundle, facts = _compiled(_with_op(op, []), cache, tmp_path)
    assert [extern["op"] for extern in facts["externs"]] == [op]
    assert facts["externs"][0]["reason"]
    status, output, errors = scheduler("verify", str(bundle), "--json")
    assert status == 0, errors
    findings = json.loads(output)["findings"]
    assert [one["name"] for one in findings].count("whole graph") == 3
    assert all(one["passed"] for one in findings)


@pytest.mark.long(but=2)
@pytest.mark.full
@pytest.mark.parametrize("op", ["mylib.frobnicate.default", "aten.frobnicate.default"])
def test_an_op_that_nothing_knows_is_reported_when_it_is_compiled_and_when_it_is_run(
    op: str, cache: CodeCache, tmp_path: Path
) -> None:
    bundle, facts = _compiled(_with_op(op, []), cache, tmp_path)
    assert [(extern["node"], extern["op"]) for extern in facts["externs"]] == [("odd", op)]
    assert facts["externs"][0]["reason"]
    status, output, errors = scheduler("lower", str(tmp_path / "model.pt2"), "--json")
    assert status == 0, errors
    externs = [extern for node in json.loads(output)["nodes"] for extern in node["externs"]]
    assert [extern["op"] for extern in externs] == [op]
    status, output, errors = scheduler("lower", str(tmp_path / "model.pt2"))
    assert status == 0, errors
    assert externs[0]["reason"] in output
    status, output, errors = scheduler("verify", str(bundle), "--bind", "s27=4", "--json")
    assert status == 1
    assert errors == ""
    last = json.loads(output)["findings"][-1]
    assert (last["name"], last["passed"]) == ("whole graph", False)
    assert op in last["detail"]
    np.savez(tmp_path / "in.npz", x=np.ones((4, 4)), p_fc_weight=np.ones((3, 4)))
    status, output, errors = scheduler(
        *("run", str(bundle), "--inputs", str(tmp_path / "in.npz"), "--bind", "s27=4"),
        *("--outputs", str(tmp_path / "out.npz")),
    )
    assert (status, output, len(errors.splitlines())) == (2, "", 1)
    assert "odd" in errors
    assert op in errors
    assert not (tmp_path / "out.npz").exists()
