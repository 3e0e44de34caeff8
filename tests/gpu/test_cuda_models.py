"""Whole sample models on a real GPU: each kernel against its reference, then the graph, and the
bundle's own wrapper."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from scheduler import reference
from scheduler.benchmark.gate import compare_output
from scheduler.benchmark.verification import WHOLE_GRAPH, graph_tolerance, rebuild_schedule, verify
from scheduler.build.cuda.toolchains import CudaToolchain
from scheduler.bundle.inputs import input_buffers
from scheduler.bundle.reader import Bundle
from scheduler.ir.bindings import Bindings, trial_bindings
from scheduler.ir.dtypes import DType
from scheduler.ir.encoding import encode_values, widen
from scheduler.ir.storage import Array
from scheduler.runtime.device import DeviceInfo
from scheduler.targets import Target
from tests.gpu.running import (
    DTYPES,
    SAMPLES,
    assert_all_passed,
    bundle_of,
    sample,
    summary,
)

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.label)
@pytest.mark.parametrize("name", SAMPLES)
def test_a_model_is_right_at_every_size(
    name: str,
    dtype: DType,
    nvidia: DeviceInfo,
    target: Target,
    compiler: CudaToolchain,
    tmp_path: Path,
    say: Callable[[str], None],
) -> None:
    """At the least, a prime and the usual size of its symbol; one that has none once."""
    bundle = bundle_of(sample(name, dtype), target, compiler, tmp_path / "bundle")
    for bindings in trial_bindings(bundle.manifest.symbols, bundle.manifest.guards):
        findings = verify(bundle, nvidia.id, bindings)
        say(summary(findings, bindings))
        assert_all_passed(findings)
        assert findings[-1].name == WHOLE_GRAPH


@pytest.mark.parametrize(("name", "bound"), [("llama_2layer", {"s70": 19}), ("resnet_small", {})])
def test_the_wrapper_runs_in_a_process_of_its_own(
    name: str,
    bound: Bindings,
    nvidia: DeviceInfo,
    target: Target,
    compiler: CudaToolchain,
    tmp_path: Path,
) -> None:
    graph = sample(name, SAMPLES[name])
    bundle = bundle_of(graph, target, compiler, tmp_path / "bundle")
    inputs = reference.random_inputs(graph, bound, np.random.default_rng(0))
    outputs = _through_the_wrapper(bundle, bound, inputs, tmp_path)
    expected = reference.run(graph, inputs, bound)
    tolerance = graph_tolerance(rebuild_schedule(bundle), bound)
    for value, buffer, got in zip(graph.outputs, bundle.manifest.outputs, outputs, strict=True):
        wide = widen(got, bundle.manifest.buffers[buffer].dtype)
        found = compare_output(wide, expected[value], tolerance, value)
        assert found.passed, found


def _through_the_wrapper(
    bundle: Bundle, bound: Bindings, inputs: dict[str, Array], folder: Path
) -> list[Array]:
    buffers = bundle.manifest.buffers
    given = {
        buffers[buffer].source_name: encode_values(inputs[name], buffers[buffer].dtype)
        for name, buffer in input_buffers(bundle).items()
    }
    np.savez(folder / "in.npz", **given)
    binds = [part for name, size in bound.items() for part in ("--bind", f"{name}={size}")]
    files = ["--inputs", str(folder / "in.npz"), "--outputs", str(folder / "out.npz")]
    command = [sys.executable, str(bundle.folder / "wrapper.py"), "--device", "cuda", *binds]
    done = subprocess.run(
        [*command, *files], capture_output=True, text=True, check=False, timeout=120, cwd="/"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with np.load(folder / "out.npz") as found:
        return [found[name] for name in found.files]
