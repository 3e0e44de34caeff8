"""The cache that sessions share beside one that is empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.build.cache import CodeCache
from tests.support.caches import KEPT, empty_cache


@pytest.fixture(scope="session")
def shared_cache() -> CodeCache:
    return KEPT


@pytest.fixture
def cache(tmp_path: Path) -> CodeCache:
    return CodeCache(empty_cache(tmp_path / "cache"))
