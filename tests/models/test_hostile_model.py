"""A model whose names are chosen to break things goes all the way, and computes the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler.build.cache import CodeCache
from scheduler.commands.main import main
from tests.support import exported

#: Words of Python and C++, names of loops and of the wrapper's own; values like numbers and sizes.
SYMBOLS = {"s0": "run", "s1": "lambda"}
VALUES = {"x": "run", "y": "8", "gelu_1": "file", "mul_2": "../../x\n#include </etc/hostname>\n//"}


def document() -> Any:
    made = exported.with_symbols(exported.pointwise(), SYMBOLS)
    made = exported.renamed(made, VALUES)
    for node in made["graph_module"]["graph"]["nodes"]:
        node["name"] += '"""\nraise SystemExit(1)\n#'
        node["metadata"]["torch_fn"] = "x;builtin.\n#error\\"
    return made


@pytest.fixture(scope="module")
def bundle(cache: CodeCache, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    model = exported.write(folder / "model.pt2", document())
    options = ["--target", "cpu", "--cache", str(cache.root), "--out", str(folder / "bundle")]
    assert main(["compile", str(model), *options]) == 0
    return folder / "bundle"


def inputs(rows: int, columns: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    names = ("run", "layer.y")
    return {name: rng.standard_normal((rows, columns, 8), np.float32) for name in names}


def test_manifest_and_pages_keep_the_models_names(bundle: Path) -> None:
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert set(manifest["graph"]["symbols"]) == {"run", "lambda"}
    sources = {buffer["source_name"] for buffer in manifest["buffers"].values()}
    assert {"run", "file", VALUES["mul_2"]} <= sources


@pytest.mark.full
def test_the_wrapper_computes_what_the_command_does(bundle: Path, tmp_path: Path) -> None:
    given = inputs(5, 7)
    with (tmp_path / "in.npz").open("wb") as file:
        np.savez(file, **given)
    total = given["run"] + given["layer.y"]
    files = ["--inputs", str(tmp_path / "in.npz"), "--outputs", str(tmp_path / "out.npz")]
    sizes = ["--bind", "run=5", "--bind", "lambda=7"]
    assert main(["run", str(bundle), *files, *sizes]) == 0
    with np.load(tmp_path / "out.npz") as made:
        assert np.allclose(made[VALUES["mul_2"]], total * given["run"], atol=1e-5)
    done = subprocess.run(
        [sys.executable, str(bundle / "wrapper.py"), *files, *sizes],
        check=False, capture_output=True, text=True, timeout=60, cwd="/",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3
    with np.load(tmp_path / "out.npz") as made:
        assert np.allclose(made[VALUES["mul_2"]], total * given["run"], atol=1e-5)
