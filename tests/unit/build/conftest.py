"""The bundled compiler, a cache that sessions share, and one that is empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.build.cache import CodeCache
from scheduler.build.model import Toolchain
from scheduler.build.toolchains import bundled


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> CodeCache:
    # One for all workers of a parallel run: the bundled compiler sets itself up once a cache.
    return CodeCache(tmp_path_factory.getbasetemp().parent / "kiln-code-cache")


@pytest.fixture
def cache(tmp_path: Path) -> CodeCache:
    return CodeCache(tmp_path / "cache")


@pytest.fixture(scope="session")
def toolchain(shared_cache: CodeCache) -> Toolchain:
    return bundled(shared_cache)
