"""A model whose results are as large as its data say: compiled, verified, run, and its wrapper."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler import pipeline
from scheduler.benchmark.graph_run import run_sandboxed
from scheduler.benchmark.verification import verify
from scheduler.build.model import Build
from scheduler.build.toolchains import bundled_clang
from scheduler.bundle import reader, writer
from scheduler.errors import UserError
from scheduler.ir.bindings import check_backed, hint_bindings
from scheduler.ir.index.functions import is_unbacked
from scheduler.targets import find
from tests.support.caches import KEPT

torch = pytest.importorskip("torch")

from tests.unit.torch_export import as_module, export  # noqa: E402


def model(x: Any, t: Any) -> Any:
    n = t.sum().item()
    torch._check(n >= 0)
    torch._check(n < 50)
    return x[x[:, 0] > 0] @ x.T, torch.arange(n) * 2 + n, x.sum()


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> reader.Bundle:
    folder = tmp_path_factory.mktemp("data_sizes")
    args = (torch.randn(6, 4), torch.tensor([3, 4]))
    _, graph = export(as_module(model), args, folder)
    plan = pipeline.schedule(pipeline.lower(graph))
    made = pipeline.generate(plan, [find("cpu")])
    toolchain = bundled_clang(KEPT)
    results = pipeline.build_kernels(made.kernels, [find("cpu")], lambda *_: toolchain, KEPT)
    builds = {key: one for key, one in results.items() if isinstance(one, Build)}
    writer.write(folder / "out", plan, made.manifest(), made.kernels, builds)
    return reader.open_bundle(folder / "out")


def inputs(bundle: reader.Bundle, t: list[int], above: int) -> dict[str, Any]:
    """``above`` rows of the first begin above zero."""
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4)
    x[:, 0] = np.arange(6) < above
    first, second = (given.name for given in bundle.graph.inputs)
    return {first: x, second: np.asarray(t)}


@pytest.mark.full
@pytest.mark.parametrize("above", [0, 2, 6])
def test_it_gives_what_torch_gives(bundle: reader.Bundle, above: int, tmp_path: Path) -> None:
    values = inputs(bundle, [5, above], above)
    sizes = hint_bindings(bundle.manifest.symbols)
    got = run_sandboxed(bundle, "cpu", "cpu", sizes, values)
    expected = model(*(torch.from_numpy(value) for value in values.values()))
    for name, tensor in zip(bundle.manifest.outputs, expected, strict=True):
        np.testing.assert_allclose(got.values[name], tensor.numpy(), rtol=1e-5, atol=1e-6)
    assert sorted(got.bindings.values()) == sorted((above, 5 + above))
    given, written = tmp_path / "in.npz", tmp_path / "out.npz"
    np.savez(given, **values)
    command = [sys.executable, str(bundle.folder / "wrapper.py"), "--inputs", str(given)]
    done = subprocess.run(
        [*command, "--outputs", str(written)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    with np.load(written) as outputs:
        for name, tensor in zip(outputs.files, expected, strict=True):
            assert outputs[name].dtype == tensor.numpy().dtype
            np.testing.assert_allclose(outputs[name], tensor.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.full
def test_every_kernel_and_the_whole_graph_verify(bundle: reader.Bundle) -> None:
    findings = verify(bundle, "cpu", hint_bindings(bundle.manifest.symbols))
    assert [one.passed for one in findings] == [True] * len(findings)
    assert {one.name for one in findings} > {"whole graph"}


def test_who_runs_it_does_not_say_what_the_data_say(bundle: reader.Bundle) -> None:
    late = next(name for name in bundle.manifest.symbols if is_unbacked(name))
    with pytest.raises(UserError, match=f"{late} depends on data"):
        check_backed({late: 3})
    check_backed({"s0": 3})


@pytest.mark.full
def test_a_size_that_the_model_does_not_take_is_one_clear_line(
    bundle: reader.Bundle, tmp_path: Path
) -> None:
    values = inputs(bundle, [40, 10], 1)
    with pytest.raises(UserError, match=r"the data-dependent size \S+ is 50"):
        run_sandboxed(bundle, "cpu", "cpu", hint_bindings(bundle.manifest.symbols), values)
    np.savez(tmp_path / "in.npz", **values)
    command = [sys.executable, str(bundle.folder / "wrapper.py"), "--inputs"]
    done = subprocess.run(
        [*command, str(tmp_path / "in.npz")], check=False, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert re.search(r"the data-dependent size \S+ is 50, not", done.stderr)
    assert "Traceback" not in done.stderr
