"""What a kernel does to anything but its own buffers fails, and is no end of its process."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest

from scheduler import sandbox
from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.case import Case
from scheduler.benchmark.tolerance import Tolerance
from scheduler.benchmark.worker import BenchmarkWorker
from scheduler.build.cache import CodeCache
from scheduler.build.compile import build
from scheduler.build.model import Build, Toolchain
from scheduler.codegen.benchmark_request import BenchmarkRequest, ScalarArg, TensorArg
from scheduler.ir.dtypes import DType
from scheduler.ir.storage import BoundBuffer
from scheduler.targets import find
from tests.unit.benchmark.hostile_kernels import ATTACKS, source

GIB = 1 << 30

pytestmark = pytest.mark.skipif(
    bool(sandbox.sandbox_status().missing), reason="this machine does not offer the whole fence"
)


@pytest.fixture(scope="module")
def library(cache: CodeCache, toolchain: Toolchain) -> str:
    """All attacks."""
    result = build(source(), next(iter(ATTACKS)), find("cpu"), toolchain, cache)
    assert isinstance(result, Build), result
    return str(result.directory / "kernel.so")


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BenchmarkWorker]:
    """One process that survives all of them, with 4 GiB to itself."""
    folder = tmp_path_factory.mktemp("case")
    buffers = {name: BoundBuffer(name, DType.F32, (1,), (1,)) for name in ("x", "y")}
    nothing: np.ndarray = np.zeros(1)
    case = Case(buffers, {"x": np.float32(nothing)}, {"y": nothing}, {"y": Tolerance(0, 0)}, {})
    case.save(folder)
    os.environ["KILN_SECRET_KEY"] = "not for kernels"
    try:
        with BenchmarkWorker("cpu", memory_bytes=4 * GIB) as process:
            process.open(folder)
            yield process
    finally:
        del os.environ["KILN_SECRET_KEY"]


def candidate(name: str, library: str) -> BuiltCandidate:
    """A call that leaves y[0] at 0 where the attack fails."""
    args = (
        TensorArg("x", "x", "f32", (1,), (1,), False),
        TensorArg("y", "y", "f32", (1,), (1,), True),
        ScalarArg("n", "i32", 1),
    )
    return BuiltCandidate(name, library, BenchmarkRequest(name, name, "cpu", args, {}))


@pytest.mark.parametrize("name", ATTACKS)
def test_a_kernel_gets_nowhere(name: str, library: str, worker: BenchmarkWorker) -> None:
    worker.load(candidate(name, library), 120.0)
    assert worker.request(120.0, op="check", key=name)["check"]["passed"]
