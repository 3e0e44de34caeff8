"""The compiler, its cache, and emulated devices for matrix kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scheduler.build.cache import CodeCache
from scheduler.build.model import Toolchain
from scheduler.build.toolchains import bundled
from tests.unit.matrix.running import Runner

# Content decides every entry, so runs may share it: a second run compiles nothing.
CACHE = Path(__file__).resolve().parents[3] / "var" / "tests" / "code-cache"


@pytest.fixture(scope="session")
def cache() -> CodeCache:
    return CodeCache(CACHE)


@pytest.fixture(scope="session")
def toolchain(cache: CodeCache) -> Toolchain:
    return bundled(cache)


@pytest.fixture(scope="session")
def runner(cache: CodeCache, toolchain: Toolchain) -> Runner:
    """Runs candidates on the emulated gfx942."""
    return Runner(cache, toolchain)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(2240)
