"""Tuning without a GPU by the command line: real compilers, the emulation, the model, and a
measured run that begins with what it said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scheduler.bundle.reader import open_bundle
from scheduler.commands.main import main
from scheduler.targets import modelled
from scheduler.targets.modelled import TARGETS
from tests.support.caches import KEPT

torch = pytest.importorskip("torch")


class Product(torch.nn.Module):  # type: ignore[name-defined,misc]
    def forward(self, a: Any, b: Any) -> Any:
        return torch.relu(a @ b)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small product in half precision."""
    path = tmp_path_factory.mktemp("model") / "product.pt2"
    inputs = (torch.randn(64, 64).half(), torch.randn(64, 64).half())
    torch.export.save(torch.export.export(Product(), inputs), path)
    return path


def tune(model: Path, out: Path, device: str, *more: str) -> list[dict[str, Any]]:
    """The lines of the ledger."""
    limits = ("--measurements", "3", "--budget", "10m", "--cache", str(KEPT.root))
    assert main(["tune", str(model), "--device", device, "--out", str(out), *limits, *more]) == 0
    return [json.loads(line) for line in (out / "ledger.jsonl").read_text().splitlines()]


@pytest.mark.full
def test_candidates_are_ranked_without_a_gpu_and_a_measured_run_begins_with_them(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, *lines = tune(model, tmp_path / "ranked", "model:gfx942")
    assert run["times"] == "modelled"
    assert run["accounted"] == "2 of 2 nodes accounted for: 2 in kernels"
    assert run["device"]["id"] == "model:MI300X"
    modelled_lines = [line for line in lines if line["modelled"]]
    assert len(modelled_lines) == 3
    assert {line["state"] for line in modelled_lines} == {"modelled", "chosen"}
    for line in modelled_lines:
        figure = line["modelled"]
        assert line["measurement"] is None
        assert 0 < figure["time_ns"]["low"] <= figure["time_ns"]["mid"] <= figure["time_ns"]["high"]
        assert figure["unknown"] == {} and figure["sentence"]
        assert figure["checked_at"], "by the emulation, at its own sizes"
    assert not (tmp_path / "ranked" / "results.json").exists(), "nothing was measured"
    assert "not measured)" in (tmp_path / "ranked" / "autotune.log").read_text()
    bundle = open_bundle(tmp_path / "ranked").manifest
    assert bundle.chosen_by is not None and bundle.chosen_by.times == "modelled"
    choice = bundle.calls[0].choice
    assert choice is not None and choice.source == "modelled"
    shown = capsys.readouterr()
    assert "selected ms, modelled" in shown.out
    assert "3 modelled" in shown.err

    again, *same = tune(model, tmp_path / "again", "model:MI300X")
    assert again["known"] == 3, "from the cache"
    figures = [[line["kernel"], line["modelled"]] for line in lines if line["modelled"]]
    assert [[line["kernel"], line["modelled"]] for line in same if line["modelled"]] == figures
    capsys.readouterr()

    begun, *measured = tune(model, tmp_path / "tuned", "cpu", "--from", str(tmp_path / "ranked"))
    assert begun["from"]["device"] == "model:MI300X"
    tried = sorted((line for line in measured if line["order"]), key=lambda line: line["order"])
    order = sorted(modelled_lines, key=lambda line: line["modelled"]["time_ns"]["mid"])
    expected = [line["kernel"] for line in order]
    default = next(line["kernel"] for line in lines if line["is_default"])
    expected = [default, *(name for name in expected if name != default)]
    assert [line["kernel"] for line in tried] == expected
    assert all(line["measurement"] and line["modelled"] for line in tried)
    assert "fastest as modelled for model:MI300X" in capsys.readouterr().err
    assert (tmp_path / "tuned" / "autotune.log").read_text().startswith("each problem begins with")
    assert begun["times"] == "measured"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--device", "model:sm_90"), "times are not modelled for sm_90"),
        (("--device", "isa:gfx942"), "measures no times: use model:gfx942"),
        (("--device", "model:gfx942", "--try-unfused"), "--try-unfused"),
        (("--device", "model:gfx942", "--from", "ranked"), "measures nothing"),
        (("--device", "cpu", "--from", "nowhere"), "nowhere"),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    more: tuple[str, ...],
    words: str,
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["tune", str(model), "--out", str(tmp_path / "out"), *more]) == 2
    error = capsys.readouterr().err.strip()
    assert words in error and "\n" not in error


def test_the_devices_are_listed_and_run_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "model:MI300X" in [one["id"] for one in found["modelled"]]
    assert not [one for one in found["devices"] if one["id"].startswith("model:")]
    assert main(["verify", "nowhere", "--device", "model:gfx942"]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_devices_are_of_the_targets_that_the_model_knows() -> None:
    assert set(modelled.TARGETS) == set(TARGETS)
