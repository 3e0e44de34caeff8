"""``python -m scheduler`` as a person uses it: real processes, exit statuses, one clear line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from scheduler import samples
from scheduler.build.cache import CodeCache

MODEL = str(samples.path("gpt2_2layer"))


class Example(NamedTuple):
    """The file of a call's inputs, and what comes out."""

    inputs: Path
    outputs: dict[str, Any]


def scheduler(*arguments: str, seed: str = "0", cwd: Path | None = None) -> tuple[int, str, str]:
    """Exit status, standard output, standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "scheduler", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def bundle(cache: CodeCache, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """gpt2_2layer for the emulation."""
    out = tmp_path_factory.mktemp("bundles") / "gpt2"
    status, _, errors = scheduler(
        "compile", MODEL, "--target", "cpu", "--cache", str(cache.root), "--out", str(out)
    )
    assert status == 0, errors
    return out


@pytest.fixture(scope="module")
def unfused(cache: CodeCache, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """gpt2_2layer for the emulation, one kernel an operation."""
    out = tmp_path_factory.mktemp("bundles") / "unfused"
    status, _, errors = scheduler(
        *("compile", MODEL, "--target", "cpu", "--no-fuse"),
        *("--cache", str(cache.root), "--out", str(out)),
    )
    assert status == 0, errors
    return out


@pytest.fixture(scope="module")
def example(bundle: Path) -> Example:
    """Inputs of the model, which every bundle of it takes, and the reference's outputs."""
    from scheduler import reference
    from scheduler.bundle.reader import open_bundle

    graph, bindings = open_bundle(bundle).graph, {"s70": 7}
    inputs = reference.random_inputs(graph, bindings, np.random.default_rng(5))
    file = bundle.parent / "in.npz"
    np.savez(file, **inputs)
    return Example(file, reference.run(graph, inputs, bindings))


@pytest.mark.full(but=10)
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["lower", "absent.pt2"], "absent.pt2"),
        (["lower", __file__], "Python source"),
        (["compile", MODEL, "--target", "gfx9000", "--out", "x"], "gfx9000"),
        (["compile", MODEL, "--target", "gfx942", "--out", "x", "--bind", "s70"], "SYMBOL=NUMBER"),
        (["compile", MODEL, "--target", "gfx942", "--out", "x", "--bind", "s1=4"], "s70"),
        (["compile", MODEL, "--target", "gfx942", "--out", "x", "--bind", "s70=1"], "2 to 1024"),
        (["compile", MODEL, "--target", "gfx942", "--out", "x", "--flags", "-o /x"], "flag"),
        (["compile", MODEL, "--target", "gfx942", "--out", __file__], "is a file"),
        (["compile", MODEL, "--target", "gfx942", "--out", str(Path(__file__).parent)], "bundle"),
        (["verify", str(Path(__file__).parent)], "manifest.json"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(
    arguments: list[str], says: str, tmp_path: Path
) -> None:
    status, output, errors = scheduler(*arguments, cwd=tmp_path)
    assert status == 2
    assert output == ""
    assert len(errors.splitlines()) == 1
    assert says in errors
    assert list(tmp_path.iterdir()) == []  # nothing half-done stays behind


@pytest.mark.full
def test_an_unknown_device_is_one_line_and_status_2(bundle: Path) -> None:
    status, _, errors = scheduler("verify", str(bundle), "--device", "abacus")
    assert status == 2
    assert "abacus" in errors
    assert len(errors.splitlines()) == 1


@pytest.mark.full
def test_the_second_compilation_compiles_nothing_and_says_so(
    cache: CodeCache, bundle: Path, tmp_path: Path
) -> None:
    arguments = ["compile", MODEL, "--target", "cpu", "--cache", str(cache.root)]
    status, _, errors = scheduler(*arguments, "--out", str(tmp_path / "again"))
    assert status == 0
    assert "0 compiled" in errors
    assert "nothing to compile" in errors
    status, output, _ = scheduler(*arguments, "--out", str(tmp_path / "again"), "--json")
    facts = json.loads(output)
    assert status == 0
    assert facts["builds"]["compiled"] == 0
    assert facts["builds"]["cached"] == facts["kernels"]


@pytest.mark.long
def test_a_bundle_is_the_same_in_any_process_folder_and_hash_seed(tmp_path: Path) -> None:
    trees = []
    for seed in ("1", "2"):
        place = tmp_path / f"folder{seed}"
        place.mkdir()
        status, _, errors = scheduler(
            *("compile", MODEL, "--target", "gfx942", "--out", "bundle"),
            *("--cache", str(place / "cache")),
            seed=seed,
            cwd=place,
        )
        assert status == 0, errors
        trees.append(contents(place / "bundle"))
        assert not any(str(tmp_path).encode() in data for data in trees[-1].values())
    assert trees[0] == trees[1]


def contents(folder: Path) -> dict[str, bytes]:
    """Every file; of build.json all but the time it took and what the compiler said."""
    files: dict[str, bytes] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            if path.name == "build.json":
                facts = json.loads(data)
                del facts["duration_s"], facts["log"]
                data = json.dumps(facts).encode()
            files[str(path.relative_to(folder))] = data
    return files


@pytest.mark.full
def test_lowering_and_compiling_wait_for_no_scipy(
    bundle: Path, cache: CodeCache, tmp_path: Path
) -> None:
    """It takes a third of a second to load; only the reference and the search need it."""
    program = (
        "import sys; from scheduler.commands.main import main; status = main();"
        "sys.exit(status or 'scipy' in sys.modules)"
    )
    for arguments in (
        ["lower", MODEL],
        ["compile", MODEL, "--target", "cpu", "--cache", str(cache.root), "--out", "again"],
    ):
        command = [sys.executable, "-c", program, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 0, done.stderr or "SciPy was loaded"


@pytest.mark.long
def test_verify_accepts_what_was_compiled_without_fusion(bundle: Path, unfused: Path) -> None:
    manifests = [json.loads((one / "manifest.json").read_text()) for one in (unfused, bundle)]
    assert [manifest["fused"] for manifest in manifests] == [False, True]
    assert len(manifests[0]["calls"]) > len(manifests[1]["calls"])
    status, output, errors = scheduler("verify", str(unfused), "--bind", "s70=7", "--json")
    assert status == 0, errors
    findings = json.loads(output)["findings"]
    assert {finding["name"] for finding in findings} > {"whole graph"}
    assert all(finding["passed"] for finding in findings)


@pytest.mark.long(but=["True"])
@pytest.mark.full
@pytest.mark.parametrize("fused", [True, False])
def test_run_writes_the_outputs_that_the_reference_gives(
    fused: bool, bundle: Path, unfused: Path, example: Example, tmp_path: Path
) -> None:
    folder = bundle if fused else unfused
    status, _, errors = scheduler(
        *("run", str(folder), "--inputs", str(example.inputs), "--bind", "s70=7"),
        *("--outputs", str(tmp_path / "out.npz")),
    )
    assert status == 0, errors
    with np.load(tmp_path / "out.npz") as outputs:
        assert set(outputs.files) == set(example.outputs)
        for name in outputs.files:
            assert outputs[name] == pytest.approx(example.outputs[name], abs=0.05)


@pytest.mark.full
def test_run_says_which_inputs_are_missing(bundle: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", input_ids=np.zeros((2, 7), np.int64))
    status, _, errors = scheduler(
        *("run", str(bundle), "--inputs", str(tmp_path / "in.npz"), "--bind", "s70=7"),
        *("--outputs", str(tmp_path / "out.npz")),
    )
    assert status == 2
    assert "lacks" in errors
    assert not (tmp_path / "out.npz").exists()


@pytest.mark.full
def test_devices_and_targets_say_what_is_there_and_why_the_rest_is_not() -> None:
    status, output, _ = scheduler("devices", "--json")
    found = json.loads(output)
    assert status == 0
    assert "cpu" in {device["id"] for device in found["devices"]}
    assert all(absent["reason"] for absent in found["absent"])
    status, output, _ = scheduler("targets", "--json")
    facts = json.loads(output)
    assert status == 0
    assert facts["targets"]["gfx942"]["wavefront"] == 64
    assert any(one["name"] == "bundled" and one["version"] for one in facts["toolchains"])
    assert all(one["version"] or one["reason"] for one in facts["toolchains"])


def test_lower_names_every_node_with_its_origin_and_every_rejection_with_its_reason() -> None:
    status, output, _ = scheduler("lower", MODEL, "--json")
    facts = json.loads(output)
    assert status == 0
    origins = [origin for node in facts["nodes"] for origin in node["origins"]]
    assert any("attn" in origin["module"] for origin in origins)
    assert any(frame["code"] for origin in origins for frame in origin["frames"])
    assert all(decision["reason"] for decision in facts["decisions"])
