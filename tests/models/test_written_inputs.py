"""A model that writes its buffers, and one of which a part cannot be computed, from file to result:
``run``, ``verify``, and the wrapper in place."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler.build.cache import CodeCache
from scheduler.bundle.reader import open_bundle
from tests.models.test_bad_models import _compiled, _with_op
from tests.models.test_command_line import scheduler
from tests.unit.test_pt2 import G, _arg, _node, _tensor

STATE = {"kept": np.arange(12.0, dtype=np.float32).reshape(3, 4), "calls": np.array(7)}
X = np.ones((2, 4), np.float32)
KEPT = np.concatenate([2 * X, 10 * STATE["kept"][2:]])


def decoder(folder: Path, *, decompose: bool) -> Path:
    """A cache that is read before and after it is written, and a counter without dimensions."""
    torch = pytest.importorskip("torch")

    class Decoder(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            for name, value in STATE.items():
                self.register_buffer(name, torch.tensor(value))

        def forward(self, x: Any) -> Any:
            before = self.kept.sum(0)
            self.kept[:2] = x * 2
            self.kept[2].mul_(10)
            self.calls += 1
            return before, self.kept.sum(0)

    program = torch.export.export(Decoder(), (torch.tensor(X),))
    if decompose:
        program = program.run_decompositions()
    torch.export.save(program, folder / "model.pt2")
    return folder / "model.pt2"


def _wrapper(bundle: Path) -> Any:
    spec = importlib.util.spec_from_file_location("wrapper", bundle / "wrapper.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.long(but=2)
@pytest.mark.full
@pytest.mark.parametrize("decompose", [False, True], ids=["plain", "decomposed"])
def test_what_a_model_writes_is_written_back(
    decompose: bool, cache: CodeCache, tmp_path: Path
) -> None:
    bundle = tmp_path / "bundle"
    status, _, errors = scheduler(
        *("compile", str(decoder(tmp_path, decompose=decompose)), "--target", "cpu"),
        *("--cache", str(cache.root), "--out", str(bundle)),
    )
    assert status == 0, errors
    opened = open_bundle(bundle)
    returned = [opened.graph.outputs[place] for place in opened.graph.returned_outputs]

    status, output, errors = scheduler("verify", str(bundle), "--json")
    assert status == 0, errors
    findings = [one for one in json.loads(output)["findings"] if one["name"] == "whole graph"]
    assert {one["output"] for one in findings} == {*returned, "kept", "calls"}

    np.savez(tmp_path / "in.npz", **{"x": X, **STATE})
    status, output, errors = scheduler(
        *("run", str(bundle), "--inputs", str(tmp_path / "in.npz"), "--json"),
        *("--outputs", str(tmp_path / "out.npz")),
    )
    assert status == 0, errors
    assert sorted(json.loads(output)["written"]) == ["calls", "kept"]
    with np.load(tmp_path / "out.npz") as made:
        np.testing.assert_allclose(made["kept"], KEPT)
        assert made["calls"] == 8
        np.testing.assert_allclose(made[returned[0]], STATE["kept"].sum(0))
        np.testing.assert_allclose(made[returned[1]], KEPT.sum(0))

    wrapper = _wrapper(bundle)
    given = {name: np.array(value) for name, value in STATE.items()} | {"x": X.copy()}
    held = dict(given)
    before, after = wrapper.call(given)
    np.testing.assert_allclose(before, STATE["kept"].sum(0))
    np.testing.assert_allclose(after, KEPT.sum(0))
    np.testing.assert_allclose(held["kept"], KEPT)
    assert held["calls"] == 8
    wrapper.call(given)
    assert held["calls"] == 9, "the second call goes on from what the first wrote"
    np.testing.assert_allclose(held["x"], X)
    given["kept"].flags.writeable = False
    with pytest.raises(SystemExit, match="kept is written by the model"):
        wrapper.call(given)
    with pytest.raises(SystemExit, match="calls is written by the model"):
        wrapper.call({**given, "kept": KEPT.copy(), "calls": np.int64(1)})
    assert held["calls"] == 9, "nothing is written where a call fails"


@pytest.mark.long
def test_what_nothing_computes_leaves_the_other_outputs(cache: CodeCache, tmp_path: Path) -> None:
    """relu(linear(x)) and the exponential of an op that nothing knows."""
    document = _with_op("mylib.frobnicate.default", [])
    outputs = [_tensor("relu"), _tensor("last")]
    document[G]["graph"]["outputs"] = outputs
    document[G]["signature"]["output_specs"] = [{"user_output": {"arg": o}} for o in outputs]
    bundle, facts = _compiled(document, cache, tmp_path)
    assert [one["op"] for one in facts["externs"]] == ["mylib.frobnicate.default"]

    status, output, errors = scheduler("verify", str(bundle), "--bind", "s27=4", "--json")
    assert (status, errors) == (0, "")
    findings = {one["output"]: one for one in json.loads(output)["findings"] if one["output"]}
    assert findings["relu"]["passed"] is True
    assert findings["last"]["passed"] is None
    assert "mylib.frobnicate.default" in findings["last"]["detail"]
    assert "node odd" in findings["last"]["detail"]
    status, output, errors = scheduler("verify", str(bundle), "--bind", "s27=4")
    assert "not checked" in output
    assert "1 outputs not checked" in errors

    x, weight = np.ones((4, 4), np.float32), np.ones((3, 4), np.float32)
    np.savez(tmp_path / "in.npz", x=x, p_fc_weight=weight)
    status, output, errors = scheduler(
        *("run", str(bundle), "--inputs", str(tmp_path / "in.npz"), "--bind", "s27=4"),
        *("--outputs", str(tmp_path / "out.npz")),
    )
    assert status == 0, errors
    said = "output last needs mylib.frobnicate.default, which has neither a kernel nor a reference"
    assert said in errors.splitlines()[0]
    with np.load(tmp_path / "out.npz") as made:
        assert made.files == ["relu"]
        np.testing.assert_allclose(made["relu"], 4.0)

    wrapper = _wrapper(bundle)
    values = {**wrapper.INPUTS, **wrapper.PARAMETERS}
    given = {name: x if name == "x" else weight for name in values}
    with pytest.warns(UserWarning, match="output last needs mylib.frobnicate.default"):
        relu, last = wrapper.call(given)
    np.testing.assert_allclose(relu, 4.0)
    assert last is None


@pytest.mark.full
def test_a_dead_node_that_nothing_knows_does_no_harm(cache: CodeCache, tmp_path: Path) -> None:
    document = _with_op("mylib.frobnicate.default", [])
    document[G]["graph"]["outputs"] = [_tensor("relu")]
    document[G]["signature"]["output_specs"] = [{"user_output": {"arg": _tensor("relu")}}]
    bundle, facts = _compiled(document, cache, tmp_path)
    assert facts["externs"] == []
    status, output, errors = scheduler("verify", str(bundle), "--bind", "s27=4", "--json")
    assert (status, errors) == (0, "")
    assert all(one["passed"] for one in json.loads(output)["findings"])


@pytest.mark.full
def test_an_op_in_place_that_nothing_knows_is_what_its_memory_needs(
    cache: CodeCache, tmp_path: Path
) -> None:
    """Its name says that it writes: what is read from there later is not the old value."""
    document = _with_op("mylib.scale_.default", [])
    document[G]["graph"]["nodes"].append(
        _node("torch.ops.aten.neg.default", [_arg("self", _tensor("relu"))], [_tensor("n")], "n")
    )
    values = document[G]["graph"]["tensor_values"]
    values["n"] = values["relu"]
    outputs = [_tensor("linear"), _tensor("n")]
    document[G]["graph"]["outputs"] = outputs
    document[G]["signature"]["output_specs"] = [{"user_output": {"arg": o}} for o in outputs]
    bundle, _ = _compiled(document, cache, tmp_path)
    status, output, _ = scheduler("verify", str(bundle), "--bind", "s27=4", "--json")
    findings = {one["output"]: one for one in json.loads(output)["findings"] if one["output"]}
    assert (status, findings["linear"]["passed"], findings["n"]["passed"]) == (0, True, None)
