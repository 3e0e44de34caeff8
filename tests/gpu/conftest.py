"""The NVIDIA GPU that the tests of this folder run on, and the compiler for it. Nothing here needs
more than the engine does: no Django, no hip-python."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduler.build.compile import build
from scheduler.build.cuda.toolchains import CudaToolchain, cuda_compilers
from scheduler.build.model import Build
from scheduler.build.recipe import library_of
from scheduler.build.toolchains import Search, find_target_toolchains, pick_toolchain
from scheduler.codegen.languages import CUTEDSL_SOURCE
from scheduler.errors import UserError
from scheduler.runtime import cuda
from scheduler.runtime.cuda import CudaDevice
from scheduler.runtime.device import DeviceInfo
from scheduler.targets import Target, find
from tests.gpu.running import PREAMBLE, Array, call
from tests.support.caches import KEPT


@pytest.fixture
def say(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """A line for the log, beside what passed and failed: figures, or the device's own words."""
    return lambda line: record_property("said", line)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The lines of all tests, in the order of their names."""
    reports = [
        report
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, ())
    ]
    said = [
        f"{report.nodeid.rpartition('::')[2]}: {line}"
        for report in sorted(reports, key=lambda report: str(report.nodeid))
        for name, line in report.user_properties
        if name == "said"
    ]
    if said:
        terminalreporter.section("what was found")
        for line in said:
            terminalreporter.line(line)


@pytest.fixture(scope="session")
def nvidia() -> DeviceInfo:
    """The first NVIDIA GPU that there is."""
    found = cuda.DEVICES.probe()
    gpus = [one for one in found if isinstance(one, DeviceInfo)]
    if not gpus:
        pytest.skip("; ".join(getattr(one, "reason", "") for one in found) or "no NVIDIA GPU")
    return gpus[0]


@pytest.fixture(scope="session")
def target(nvidia: DeviceInfo) -> Target:
    return find(nvidia.target)


@pytest.fixture(scope="session")
def compiler(target: Target) -> CudaToolchain:
    """The one with ptxas where it is installed, else the one that leaves PTX to the driver."""
    found = pick_toolchain(
        cuda_compilers(Search(path=os.environ.get("PATH", ""), cache=KEPT)), target
    )
    assert isinstance(found, CudaToolchain)
    return found


@pytest.fixture(scope="session")
def compiled(target: Target, compiler: CudaToolchain) -> Callable[[str, str], Build]:
    """``compiled(source, symbol)``: HIP built for the GPU."""

    def make(source: str, symbol: str) -> Build:
        made = build(PREAMBLE + source, symbol, target, compiler, KEPT)
        assert isinstance(made, Build), f"{made.reason}\n{made.detail}"
        return made

    return make


@pytest.fixture(scope="session")
def cutedsl_library(target: Target) -> Callable[[str, str], Path]:
    """``cutedsl_library(source, symbol)``: the library of a source in CuteDSL; skipped where
    nothing builds it."""
    try:
        search = Search(path=os.environ.get("PATH", ""), cache=KEPT)
        toolchain = pick_toolchain(find_target_toolchains(target, search), target, CUTEDSL_SOURCE)
    except UserError as error:
        pytest.skip(str(error))

    def make(source: str, symbol: str) -> Path:
        made = build(source, symbol, target, toolchain, KEPT, source_file=CUTEDSL_SOURCE)
        assert isinstance(made, Build), f"{made.reason}\n{made.detail}"
        return library_of(made)

    return make


@pytest.fixture(scope="module")
def device(nvidia: DeviceInfo) -> Iterator[CudaDevice]:
    """The GPU, open in this process: for kernels that do no harm."""
    opened = CudaDevice(int(nvidia.id.partition(":")[2]))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def run(device: CudaDevice, compiled: Callable[[str, str], Build]) -> Callable[..., None]:
    """``run(source, *args)``: the exported function ``go`` on arrays and integers."""

    def run(source: str, *args: Array | int) -> None:
        library: Path = compiled(source, "go").directory / "kernel.so"
        call(device, library, "go", *args)

    return run
