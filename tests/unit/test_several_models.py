"""Archives with several models, as torch writes them: read, compared and taken out by name."""

from __future__ import annotations

import copy
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from scheduler import untrusted
from scheduler.commands.main import main
from scheduler.errors import UserError
from scheduler.frontends import pt2
from scheduler.frontends.extract import extract_model

torch = pytest.importorskip("torch")


class Encoder(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.table = torch.tensor([2, 0, 1])

    def forward(self, x: Any) -> Any:
        return self.linear(x)[:, self.table]


class Decoder(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 4)

    def forward(self, x: Any) -> Any:
        return self.linear(x).relu()


ARGUMENTS = {"encoder": (torch.rand(2, 4),), "decoder": (torch.rand(2, 3),)}


@pytest.fixture(scope="module")
def modules() -> dict[str, Any]:
    return {"encoder": Encoder(), "decoder": Decoder()}


@pytest.fixture(scope="module")
def both(modules: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    from torch.export.pt2_archive._package import package_pt2

    file = tmp_path_factory.mktemp("models") / "both.pt2"
    programs = {
        name: torch.export.export(module, ARGUMENTS[name]) for name, module in modules.items()
    }
    package_pt2(str(file), exported_programs=programs)
    return file


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_model_taken_out_is_what_torch_would_have_saved(
    name: str, modules: dict[str, Any], both: Path, tmp_path: Path
) -> None:
    """With its weights and constants, and nothing of the other's."""
    out = tmp_path / "one.pt2"
    untrusted.extract_model(both, name, out)
    program = torch.export.load(out)
    expected = modules[name](*ARGUMENTS[name])
    torch.testing.assert_close(program.module()(*ARGUMENTS[name]), expected)
    assert pt2.read(out).digest == pt2.read(both, model_name=name).digest
    with zipfile.ZipFile(out) as archive:
        weights = [each for each in archive.namelist() if "/data/weights/weight_" in each]
    assert len(weights) == 2


def rewritten(source: Path, folder: Path, change: Any = None, compression: int = 0) -> Path:
    made = folder / "bad.pt2"
    with zipfile.ZipFile(source) as whole, zipfile.ZipFile(made, "w", compression) as archive:
        for name in whole.namelist():
            content = whole.read(name)
            archive.writestr(name, change(name, content) if change else content)
    return made


def climbing(name: str, content: bytes) -> bytes:
    if not name.endswith("encoder_weights_config.json"):
        return content
    config = json.loads(content)
    config["config"]["linear.bias"]["path_name"] = "../../models/decoder.json"
    return json.dumps(config).encode()


def test_hostile_archives_are_one_clear_line(both: Path, tmp_path: Path) -> None:
    out = tmp_path / "one.pt2"
    with pytest.raises(UserError, match="compressed or encrypted members"):
        extract_model(rewritten(both, tmp_path, None, zipfile.ZIP_DEFLATED), "encoder", out)
    with pytest.raises(UserError, match="not a valid member name"):
        extract_model(rewritten(both, tmp_path, climbing), "encoder", out)
    with pytest.raises(UserError, match="the models are 'decoder', 'encoder'"):
        untrusted.extract_model(both, "other", out)


def test_what_overlaps_takes_no_more_room_than_the_file(both: Path, tmp_path: Path) -> None:
    """Members of a zip may lie in the same bytes; each would be written out."""
    bad = tmp_path / "bad.pt2"
    config: dict[str, Any] = {"config": {}}
    with zipfile.ZipFile(both) as whole, zipfile.ZipFile(bad, "w") as archive:
        for name in whole.namelist():
            if not name.endswith("encoder_weights_config.json"):
                archive.writestr(name, whole.read(name))
        archive.writestr("both/data/weights/large", bytes(1 << 20))
        large = archive.getinfo("both/data/weights/large")
        for number in range(20):
            again = copy.copy(large)
            again.filename = again.orig_filename = f"both/data/weights/{number:05}"
            config["config"][str(number)] = {"path_name": f"{number:05}"}
            archive.filelist.append(again)
            archive.NameToInfo[again.filename] = again
        archive.writestr("both/data/weights/encoder_weights_config.json", json.dumps(config))
    with pytest.raises(UserError, match=r"bad\.pt2"):
        untrusted.extract_model(bad, "encoder", tmp_path / "one.pt2")
    assert not (tmp_path / "one.pt2").exists()


def test_the_command_line_lists_the_models_and_reads_the_one_that_is_named(
    both: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lower", str(both)]) == 2
    assert "'decoder', 'encoder': choose one by its name" in capsys.readouterr().err
    assert main(["lower", str(both), "--model-name", "decoder"]) == 0
    assert "relu" in capsys.readouterr().out


@pytest.mark.full
def test_verify_compares_the_model_that_is_named(
    both: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = str(tmp_path / "bundle")
    named = ["--model-name", "encoder"]
    assert main(["compile", str(both), *named, "--target", "cpu", "--out", bundle]) == 0
    capsys.readouterr()
    oracle = ["verify", bundle, "--oracle", "torch", "--model", str(both), "--json"]
    assert main([*oracle, *named]) == 0
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [one["passed"] for one in found if one["name"].startswith("torch")] == [True]
    assert main([*oracle, "--model-name", "decoder"]) == 2
    assert "was not compiled from" in capsys.readouterr().err


def test_an_only_model_of_another_name_is_compared_with_torch(tmp_path: Path) -> None:
    """torch.export.load takes none but ``model``."""
    from torch.export.pt2_archive._package import package_pt2

    from scheduler.benchmark.torch_oracle import compare_with_torch

    program = torch.export.export(Decoder(), ARGUMENTS["decoder"])
    package_pt2(str(tmp_path / "one.pt2"), exported_programs={"decoder": program})
    assert [one.passed for one in compare_with_torch(tmp_path / "one.pt2", {})] == [True]
