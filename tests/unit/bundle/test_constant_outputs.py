"""Constants, sizes and inputs among a model's outputs: a bundle returns what torch returns."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler.benchmark.verification import rebuild_schedule, verify
from scheduler.bundle.reader import open_bundle
from scheduler.commands.main import main
from scheduler.errors import UserError
from tests.support.exported_kernels import bundle_of
from tests.unit.torch_export import export

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.full

from torch.utils import _pytree  # noqa: E402


class Counted(torch.nn.Module):  # type: ignore[misc]
    """It writes a buffer too, whose new value is an output of the graph and not returned."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        self.calls += 1
        y = x + self.calls
        rows = x.shape[0]
        return 3, y, {"b": None, "a": [x, rows, 2.5]}, True, y, rows * 2 + 1, float("-inf"), x.T


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("constant_outputs")
    rows = {"x": {0: torch.export.Dim.DYNAMIC}}
    _, graph = export(Counted(), (torch.rand(4, 3),), folder, dynamic_shapes=rows)
    bundle_of(graph, folder / "bundle")
    return folder


CALL = """
import pickle, sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import wrapper
x = np.load(sys.argv[2])
made = wrapper.call({"x": x, "calls": np.zeros((), np.float32)})
assert len(made) == len(wrapper.OUTPUTS)
sys.stdout.buffer.write(pickle.dumps((made, wrapper.OUTPUTS)))
"""


def test_the_wrapper_returns_what_the_file_returns_in_torch(folder: Path, tmp_path: Path) -> None:
    x = np.linspace(-1, 1, 18, dtype=np.float32).reshape(6, 3)
    np.save(tmp_path / "x.npy", x)
    told = subprocess.run(
        [sys.executable, "-c", CALL, folder / "bundle", tmp_path / "x.npy"],
        check=True,
        capture_output=True,
    )
    made, names = pickle.loads(told.stdout)
    module = torch.export.load(folder / "model.pt2").module()
    expected = _pytree.tree_leaves(module(torch.from_numpy(x)))
    constants = [3, None, 2.5, True, float("-inf")]
    assert [value for value, name in zip(made, names, strict=True) if name is None] == constants
    for value, due, name in zip(made, expected, names, strict=True):
        if name is None:
            assert (type(value), value) == (type(due), due)
        else:
            np.testing.assert_allclose(value, np.asarray(due), rtol=1e-6)


def test_the_wrapper_saves_values_and_prints_constants(folder: Path, tmp_path: Path) -> None:
    results = tmp_path / "results.npz"
    told = subprocess.run(
        [sys.executable, folder / "bundle" / "wrapper.py", "--outputs", results],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    printed = [line for line in told.splitlines() if line.startswith("constant")]
    assert printed == [f"constant {value}" for value in ("3", "None", "2.5", "True", "-inf")]
    with np.load(results) as outputs:
        assert {"x", "calls"} < set(outputs.files)


def test_verify_compares_sizes_and_inputs_among_the_outputs(folder: Path) -> None:
    bundle = open_bundle(folder / "bundle")
    found = verify(bundle, "cpu", dict.fromkeys(bundle.manifest.symbols, 5))
    assert [one for one in found if not one.passed] == []


def test_verify_rejects_a_manifest_with_other_constants(folder: Path, tmp_path: Path) -> None:
    data = json.loads((folder / "bundle" / "manifest.json").read_text())
    data["constant_outputs"][0]["value"] = 4
    (tmp_path / "manifest.json").write_text(json.dumps(data))
    (tmp_path / "graph.json").write_bytes((folder / "bundle" / "graph.json").read_bytes())
    with pytest.raises(UserError, match="other constants than the graph"):
        rebuild_schedule(open_bundle(tmp_path))


def test_run_says_which_outputs_are_constants(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, made = tmp_path / "in.npz", tmp_path / "out.npz"
    np.savez(given, x=np.ones((4, 3), np.float32), calls=np.zeros((), np.float32))
    files = ["--inputs", str(given), "--outputs", str(made)]
    assert main(["run", str(folder / "bundle"), *files, "--trust", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["constants"] == [
        {"place": 0, "value": 3},
        {"place": 2, "value": None},
        {"place": 5, "value": 2.5},
        {"place": 6, "value": True},
        {"place": 9, "value": {"float": "-inf"}},
    ]
