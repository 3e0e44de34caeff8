"""Emulated devices for matrix kernels."""

from __future__ import annotations

import numpy as np
import pytest

from scheduler.build.cache import CodeCache
from scheduler.build.model import Toolchain
from tests.unit.matrix.running import Runner


@pytest.fixture(scope="session")
def runner(cache: CodeCache, toolchain: Toolchain) -> Runner:
    """Runs candidates on the emulated gfx942."""
    return Runner(cache, toolchain)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(2240)
