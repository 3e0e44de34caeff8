"""A bundle comes back as it was written, and a damaged or hostile one is one clear line."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from scheduler import pipeline, samples
from scheduler.bundle import reader, writer
from scheduler.bundle.execute import BundleRun
from scheduler.bundle.manifest import Manifest
from scheduler.errors import UserError
from scheduler.runtime.cpu import CpuDevice
from scheduler.targets import find

SCHEMA = json.loads((Path(reader.__file__).parent / "schema.json").read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with everything in it but builds."""
    out = tmp_path_factory.mktemp("bundles") / "bert"
    plan = pipeline.schedule(pipeline.lower(pipeline.load(samples.path("gpt2_2layer"))))
    made = pipeline.generate(plan, [find("cpu")])
    writer.write(out, plan, made.manifest(), made.kernels, {})
    return out


def test_what_is_written_is_read_and_fits_the_schema(folder: Path) -> None:
    data = json.loads((folder / "manifest.json").read_text())
    jsonschema.Draft202012Validator(SCHEMA).validate(data)
    bundle = reader.open_bundle(folder)
    assert bundle.manifest.to_json() == data
    assert Manifest.from_json(bundle.manifest.to_json()) == bundle.manifest
    assert bundle.graph.digest == bundle.manifest.graph_digest


@pytest.mark.full(but=["bert_2layer", "gpt2_2layer"])
@pytest.mark.parametrize("name", samples.names())
def test_manifests_of_samples_survive_the_trip(name: str) -> None:
    plan = pipeline.schedule(pipeline.lower(pipeline.load(samples.path(name))))
    manifest = pipeline.generate(plan, [find("cpu")]).manifest()
    data = json.loads(json.dumps(manifest.to_json()))
    jsonschema.Draft202012Validator(SCHEMA).validate(data)
    assert Manifest.from_json(data).to_json() == data


Damage = Callable[[dict[str, Any]], object]


def _first(part: dict[str, Any]) -> Any:
    return next(iter(part.values()))


def _pointer(data: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The first call's arguments, and the name of one that is a buffer."""
    args = data["calls"][0]["args"]
    return args, next(name for name, value in args.items() if value in data["buffers"])


def _number_for_a_buffer(data: dict[str, Any]) -> None:
    args, name = _pointer(data)
    args[name] = "4096"


def _kernel_that_climbs(data: dict[str, Any]) -> None:
    data["kernels"]["../../etc"] = _first(data["kernels"])


def _extern(data: dict[str, Any], **changed: Any) -> None:
    entry = {"node": "a", "op": "b", "reason": "c", "position": 0, "outputs": []}
    data["externs"].append(entry | changed)


BOMB = "Max(" * 60 + "s70" + ")" * 60
DAMAGES: dict[str, tuple[Damage, str]] = {
    "a kernel outside": (_kernel_that_climbs, "../../etc"),
    "a source outside": (lambda d: _first(d["kernels"]).update(source="/etc/passwd"), "source"),
    "a target outside": (lambda d: d["targets"].append("../x"), "targets"),
    "another schema": (lambda d: d.update(schema=2), "schema"),
    "nothing": (lambda d: d.clear(), "required"),
    "an unknown kernel": (lambda d: d["calls"][0].update(kernel="none"), "none"),
    "a missing argument": (lambda d: d["calls"][0]["args"].popitem(), "is missing"),
    "a number for a pointer": (_number_for_a_buffer, "must pass a buffer"),
    "an unknown output": (lambda d: d["outputs"].append("nowhere"), "nowhere"),
    "an unknown dtype": (lambda d: _first(d["buffers"]).update(dtype="f8"), "f8"),
    "an unknown size": (lambda d: _first(d["buffers"]).update(size=["s99"]), "s99"),
    "code for a size": (lambda d: _first(d["buffers"]).update(size=["__import__('os')"]), "not an"),
    "a deep expression": (lambda d: _first(d["buffers"]).update(size=["(" * 5000]), "expression"),
    "a bomb": (lambda d: _first(d["buffers"]).update(size=["9**16**16**16**16"]), "expression"),
    "nested calls": (lambda d: _first(d["buffers"]).update(size=[BOMB * 3]), "expression"),
    "an unknown pool": (lambda d: d["storage"].update({_key(d): "pool99"}), "pool99"),
    "an extern's output": (lambda d: _extern(d, outputs=["nowhere"]), "nowhere"),
    "an extern too late": (lambda d: _extern(d, position=10**6), "after the last call"),
    "a choice from nowhere": (lambda d: d["calls"][0].update(choice={"source": "?"}), "choice"),
    "code for a kernel that is not made": (
        lambda d: d["calls"][0].update(choice={"source": "default", "not_made": "x\nimport os"}),
        "not_made",
    ),
    "chosen by nobody": (lambda d: d.update(chosen_by={}), "chosen_by"),
    "an extern without reason": (lambda d: _extern(d, reason=""), "reason"),
    "a constant at no place": (
        lambda d: d.update(constant_outputs=[{"place": 99, "value": 1}]),
        "a constant is output 99",
    ),
    "a constant that is code": (
        lambda d: d.update(constant_outputs=[{"place": 0, "value": {"float": "exit()"}}]),
        "constant_outputs",
    ),
}


def _key(data: dict[str, Any]) -> str:
    return str(next(iter(data["buffers"])))


@pytest.mark.parametrize("name", DAMAGES)
def test_a_hostile_manifest_is_one_clear_line(name: str, folder: Path, tmp_path: Path) -> None:
    damage, said = DAMAGES[name]
    data = json.loads((folder / "manifest.json").read_text())
    damage(data)
    (tmp_path / "manifest.json").write_text(json.dumps(data))
    with pytest.raises(UserError) as error:
        reader.open_bundle(tmp_path)
    assert said in str(error.value)
    assert len(str(error.value)) < 1000


def test_what_is_there_by_name_has_no_other_name(folder: Path, tmp_path: Path) -> None:
    data = json.loads((folder / "manifest.json").read_text())
    key = _key(data)
    data["buffers"][key]["name"] = "../../elsewhere"
    next(iter(data["graph"]["symbols"].values()))["name"] = "x\nimport os"
    (tmp_path / "manifest.json").write_text(json.dumps(data))
    read = reader.open_bundle(tmp_path).manifest
    assert read.buffers[key].name == key
    assert all(name == info.name for name, info in read.symbols.items())


@pytest.mark.parametrize("text", ["", "[", "[" * 100_000, "\0", '{"schema": NaN}', "null"])
def test_what_is_no_manifest_is_one_clear_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(UserError, match=r"manifest\.json"):
        reader.open_bundle(tmp_path)


def test_the_graph_of_another_model_is_rejected(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text((folder / "manifest.json").read_text())
    graph = json.loads((folder / "graph.json").read_text())
    graph["digest"] = "0" * 64
    (tmp_path / "graph.json").write_text(json.dumps(graph))
    with pytest.raises(UserError, match="belong to different models"):
        _ = reader.open_bundle(tmp_path).graph


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"size": ["s70**16*s70**16"], "stride": ["1"]}, "larger than any memory"),
        ({"size": ["4", "4"], "stride": ["-4", "1"]}, "negative"),
        ({"size": ["2 - s70"], "stride": ["1"]}, "negative"),
        ({"size": ["2", "2"], "stride": ["1125899906842624", "1"]}, "larger than any memory"),
    ],
)
def test_sizes_that_no_memory_has_are_rejected_before_anything_is_touched(
    change: dict[str, Any], said: str, folder: Path
) -> None:
    data = copy.deepcopy(json.loads((folder / "manifest.json").read_text()))
    data["buffers"][_key(data)].update(change)
    bundle = reader.Bundle(folder, Manifest.from_json(data))
    device = CpuDevice(find("cpu"), 1)
    with pytest.raises(UserError, match=said):
        BundleRun(bundle, device, {"s70": 64}, lambda *_: {})
    device.close()


def test_a_missing_build_says_how_to_make_it(folder: Path) -> None:
    bundle = reader.open_bundle(folder)
    with pytest.raises(UserError, match="compile the model for cpu too"):
        bundle.library(next(iter(bundle.manifest.kernels)), "cpu")


def test_a_wrong_shape_is_reported_by_name(folder: Path) -> None:
    bundle, device = reader.open_bundle(folder), CpuDevice(find("cpu"), 1)
    values = {name: np.zeros((1,)) for name in bundle.manifest.buffers}
    with (
        pytest.raises(UserError, match="must be"),
        BundleRun(bundle, device, {"s70": 5}, lambda *_: {}) as loaded,
    ):
        loaded.run(values)
    device.close()


@pytest.mark.parametrize(
    ("behind", "kind", "says"),
    [
        (-1, "input", ""),
        (0, "input", "is written back, but is not an input"),
        (7, "parameter", "is written back, but is not an input"),
        (-1, "intermediate", "is written back, but is not an input"),
    ],
)
def test_what_is_written_back_is_an_output_that_is_there_into_an_input(
    behind: int, kind: str, says: str, folder: Path, tmp_path: Path
) -> None:
    """The last output is one, and what is behind it is not."""
    data = json.loads((folder / "manifest.json").read_text())
    name = next(name for name, one in data["buffers"].items() if one["kind"] == kind)
    data["mutations"] = [{"output": len(data["outputs"]) + behind, "input": name}]
    (tmp_path / "manifest.json").write_text(json.dumps(data))
    if not says:
        assert reader.open_bundle(tmp_path).manifest.mutations[0].input == name
        return
    with pytest.raises(UserError, match=f"{name} {says}"):
        reader.open_bundle(tmp_path)
