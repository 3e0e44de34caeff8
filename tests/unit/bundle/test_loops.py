"""Models with loops: their bodies are kernels, which run, verify and stand in the wrapper."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scheduler import pipeline
from scheduler.benchmark import verification
from scheduler.benchmark.graph_run import run_sandboxed
from scheduler.benchmark.verification import rebuild_schedule, run_once, verify
from scheduler.build.model import Build
from scheduler.build.toolchains import bundled_clang
from scheduler.bundle import loop_state, reader, writer
from scheduler.errors import UserError
from scheduler.ir.bindings import hint_bindings
from scheduler.ir.reference import higher_order as reference
from scheduler.runtime.devices import open_device
from scheduler.targets import find
from tests.support.caches import KEPT

torch = pytest.importorskip("torch")

from tests.unit.torch_export import as_module, export, inputs_of  # noqa: E402

while_loop = torch._higher_order_ops.while_loop
scan, each = torch._higher_order_ops.scan, torch._higher_order_ops.map
DRAWN = torch.Generator().manual_seed(3)


class Counted(torch.nn.Module):  # type: ignore[misc]
    """A layer, then softmax, as often as a tensor says."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(16, 16)

    def forward(self, x: Any, times: Any) -> Any:
        def body(i: Any, y: Any) -> Any:
            return i + 1, (self.layer(y) * 2).softmax(-1) + x

        return while_loop(lambda i, y: i < times, body, (torch.tensor(0), x))


class Recurrent(torch.nn.Module):  # type: ignore[misc]
    """A cell over a sequence; what a step puts out is 5 elements a row, which end in between."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.out = torch.nn.Linear(8, 8), torch.nn.Linear(8, 5)

    def forward(self, x: Any) -> Any:
        def step(hidden: Any, x: Any) -> Any:
            hidden = torch.tanh(self.hidden(hidden) + x)
            return hidden, self.out(hidden)

        return scan(step, x[0], x)


class Layer(torch.nn.Module):  # type: ignore[misc]
    """A recurrent layer over more steps than are lowered one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(4, 8, bidirectional=True)

    def forward(self, x: Any) -> Any:
        out, state = self.lstm(x)
        return out, *state


class EachSlice(torch.nn.Module):  # type: ignore[misc]
    """A product and a softmax of every slice, and a loop within the body."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(6, 3, generator=DRAWN))

    def forward(self, x: Any) -> Any:
        def halved(y: Any) -> Any:
            return while_loop(lambda y: y.abs().max() > 1, lambda y: (y / 2,), (y,))[0]

        return each(lambda y: (y @ self.weight).softmax(-1), x), each(halved, x[:, 0])


def solved(x: Any, a: Any) -> Any:
    """What LAPACK does in each step, between kernels."""

    def body(i: Any, y: Any) -> Any:
        return i + 1, (torch.linalg.solve(a, y) * 0.5 + x).contiguous()

    return while_loop(lambda i, y: i < 4, body, (torch.tensor(0), x))[1]


def newton(x: Any) -> Any:
    def goes_on(root: Any, moved: Any) -> Any:
        return moved.abs().max() > 1e-3

    def body(root: Any, _moved: Any) -> Any:
        better = (root + x.abs() / root) / 2
        return better, better - root

    return while_loop(goes_on, body, (x.abs() + 1, x.abs() + 1))[0]


@dataclass(frozen=True)
class Made:
    module: Any
    values: dict[str, Any]
    expected: tuple[Any, ...]
    bundle: reader.Bundle


def random(*size: int) -> Any:
    return torch.randn(size, generator=DRAWN)


STEPS = {"x": {0: torch.export.Dim("steps", min=2, max=1000)}}
MODELS = {
    "counted": (Counted(), (random(4, 16), torch.tensor(5)), {}),
    "converged": (as_module(newton), (random(30),), {}),
    "recurrent": (Recurrent(), (random(200, 3, 8),), {}),
    "dynamic": (Recurrent(), (random(30, 3, 8),), {"dynamic_shapes": STEPS}),
    "solved": (as_module(solved), (random(4, 2), random(4, 4) + 4 * torch.eye(4)), {}),
    "layer": (Layer(), (random(140, 2, 4),), {}),
    "slices": (EachSlice(), (random(100, 4, 6),), {}),
}


@pytest.fixture(scope="module", params=[name for name in MODELS if name != "solved"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    module, args, options = MODELS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    program, graph = export(module, args, folder, **options)
    plan = pipeline.schedule(pipeline.lower(graph))
    generated = pipeline.generate(plan, [find("cpu")])
    toolchain = bundled_clang(KEPT)
    results = pipeline.build_kernels(generated.kernels, [find("cpu")], lambda *_: toolchain, KEPT)
    builds = {key: one for key, one in results.items() if isinstance(one, Build)}
    writer.write(folder / "out", plan, generated.manifest(), generated.kernels, builds)
    values = {name: _single(value) for name, value in inputs_of(program, graph, args).items()}
    with torch.no_grad():
        expected = module(*args)
    listed = tuple(expected) if isinstance(expected, tuple | list) else (expected,)
    return Made(module, values, listed, reader.open_bundle(folder / "out"))


def _single(value: Any) -> Any:
    return value.astype(np.float32) if value.dtype == np.float64 else value


@pytest.mark.full
@pytest.mark.parametrize("made", ["solved"], indirect=True)
def test_what_has_no_kernel_runs_in_each_step(made: Made) -> None:
    manifest = made.bundle.manifest
    (extern,), (loop,) = manifest.externs, manifest.loops
    assert extern.op.startswith("aten._linalg_solve_ex") or extern.op.startswith("aten.linalg")
    assert loop.begin[0] <= extern.position <= loop.end[0]
    assert (loop.begin[1], loop.end[1]) == (0, 1)
    got = run_sandboxed(made.bundle, "cpu", "cpu", {}, made.values)
    (name,) = manifest.outputs
    np.testing.assert_allclose(got.values[name], made.expected[0].numpy(), rtol=1e-4, atol=1e-5)
    assert all(one.passed for one in verify(made.bundle, "cpu", {}))


@pytest.mark.parametrize("made", ["solved"], indirect=True)
def test_the_wrapper_leaves_out_a_loop_that_needs_the_reference(made: Made, tmp_path: Path) -> None:
    wrong = _wrapper(made, tmp_path, tmp_path / "none.npz")
    assert "has no kernel" in wrong
    assert "Traceback" not in wrong


@pytest.mark.full
def test_all_of_a_loop_is_kernels(made: Made) -> None:
    manifest = made.bundle.manifest
    assert manifest.externs == ()
    assert manifest.loops
    for loop in manifest.loops:
        body = manifest.calls[loop.begin[0] : loop.end[0]]
        assert body
        assert all(loop.node in call.nodes for call in body)


@pytest.mark.long(but=3)
@pytest.mark.full
def test_it_gives_what_torch_gives(made: Made, tmp_path: Path) -> None:
    got = run_sandboxed(
        made.bundle, "cpu", "cpu", hint_bindings(made.bundle.manifest.symbols), made.values
    )
    for name, tensor in zip(made.bundle.manifest.outputs, made.expected, strict=True):
        np.testing.assert_allclose(got.values[name], tensor.numpy(), rtol=1e-4, atol=1e-5)
    written = tmp_path / "out.npz"
    assert not _wrapper(made, tmp_path, written)
    with np.load(written) as outputs:
        for name, tensor in zip(outputs.files, made.expected, strict=True):
            assert outputs[name].dtype == tensor.numpy().dtype
            np.testing.assert_allclose(outputs[name], tensor.numpy(), rtol=1e-4, atol=1e-5)


def _wrapper(made: Made, folder: Path, written: Path, file: str = "wrapper.py") -> str:
    """What is wrong with the wrapper's run."""
    sources = {each.name: each.source_name or each.name for each in made.bundle.graph.inputs}
    given = {sources[name]: value for name, value in made.values.items()}
    np.savez(folder / "in.npz", **given)
    command = [sys.executable, str(made.bundle.folder / file)]
    command += ["--inputs", str(folder / "in.npz"), "--outputs", str(written)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.stderr if done.returncode else ""


@pytest.mark.long(but=3)
@pytest.mark.full
def test_every_kernel_and_the_whole_graph_verify(made: Made) -> None:
    findings = verify(made.bundle, "cpu", hint_bindings(made.bundle.manifest.symbols))
    assert [one.passed for one in findings] == [True] * len(findings), findings
    assert {one.name for one in findings} > {"whole graph"}


@pytest.mark.full(but=["counted", "slices", "layer"])
def test_as_many_steps_as_the_model_is_given(made: Made) -> None:
    """Two slices, and more than the kernels were chosen for."""
    symbols = made.bundle.manifest.symbols
    for steps in (2, 333) if symbols else ():
        x = np.resize(made.values["x"], (steps, 3, 8))
        (symbol,) = symbols
        got = run_sandboxed(made.bundle, "cpu", "cpu", {symbol: steps}, {**made.values, "x": x})
        with torch.no_grad():
            expected = made.module(torch.from_numpy(x))
        for name, tensor in zip(made.bundle.manifest.outputs, expected, strict=True):
            np.testing.assert_allclose(got.values[name], tensor.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("made", ["counted"], indirect=True)
def test_a_loop_that_goes_on_is_ended_with_a_clear_line(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a run, by the wrapper, and by whoever compares with the reference."""
    monkeypatch.setattr(loop_state, "MAX_ITERATIONS", 40)
    monkeypatch.setattr(reference, "MAX_ITERATIONS", 40)
    values = {**made.values, "times": np.asarray(10**6)}
    with pytest.raises(UserError, match=r"while_loop\): the loop exceeds the limit of 40"):
        run_once(made.bundle, rebuild_schedule(made.bundle), open_device("cpu"), {}, values)
    text = (made.bundle.folder / "wrapper.py").read_text()
    (made.bundle.folder / "short.py").write_text(
        text.replace("MAX_STEPS = 100000", "MAX_STEPS = 40")
    )
    wrong = _wrapper(replace(made, values=values), tmp_path, tmp_path / "none.npz", "short.py")
    assert wrong.endswith("at most 40 steps are run, and it goes on longer\n")
    assert "Traceback" not in wrong
    monkeypatch.setattr(verification.reference, "random_inputs", lambda *_: values)
    whole = verify(made.bundle, "cpu", {})[-1]
    assert (whole.name, whole.passed) == ("whole graph", None)
    assert whole.detail.endswith("a while_loop exceeds the limit of 40 steps")


@pytest.mark.parametrize("made", ["counted"], indirect=True)
@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"end": [0, 0]}, "loops overlap: they must be nested"),
        ({"steps": "3"}, "must have either a step count or conditions"),
        ({"again": "nowhere"}, "the buffer nowhere is not defined"),
        ({"reads": [{"whole": "SCALAR", "slice": "SCALAR"}]}, "has no dimension to slice"),
        ({"begin": [0]}, r"\$.loops\[0\].begin: \[0\] is too short"),
    ],
)
def test_a_loop_that_says_what_cannot_be_is_refused(
    made: Made, change: dict[str, Any], line: str, tmp_path: Path
) -> None:
    data = json.loads((made.bundle.folder / "manifest.json").read_text())
    data["loops"][0] |= change
    scalar = data["loops"][0]["carried"][0]["before"]
    (tmp_path / "manifest.json").write_text(json.dumps(data).replace("SCALAR", scalar))
    with pytest.raises(UserError, match=line):
        reader.open_bundle(tmp_path)
