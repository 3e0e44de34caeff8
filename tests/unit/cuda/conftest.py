"""Kernels of the samples, built by the compiler and the assembler that are here."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from scheduler import targets
from scheduler.build.compile import build
from scheduler.build.cuda.toolchains import NAME, CudaToolchain, cuda_compilers
from scheduler.build.model import Build
from scheduler.build.toolchains import Search
from tests.support.caches import KEPT

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
SAMPLES = sorted(path.stem for path in GOLDEN.glob("*.hip"))

SampleBuild = Callable[[str, str], Build]


@pytest.fixture(scope="session")
def assembler() -> CudaToolchain:
    """The bundled clang with NVIDIA's assembler."""
    found = {one.name: one for one in cuda_compilers(Search(cache=KEPT))}
    toolchain = found[NAME]
    assert isinstance(toolchain, CudaToolchain), toolchain
    return toolchain


@pytest.fixture(scope="session")
def sample_build(assembler: CudaToolchain) -> SampleBuild:
    """``sample_build(sample, target)``: a kernel of tests/golden, built."""

    def make(sample: str, target: str) -> Build:
        source = (GOLDEN / f"{sample}.hip").read_text()
        symbol = re.search(r"PT_EXPORT int (\w+)\(", source)
        assert symbol is not None
        made = build(source, symbol[1], targets.find(target), assembler, KEPT)
        assert isinstance(made, Build), made
        return made

    return make
