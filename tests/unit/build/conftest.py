"""The cache that sessions share beside one that is empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.build.cache import CodeCache
from tests.support.caches import KEPT


@pytest.fixture(scope="session")
def shared_cache() -> CodeCache:
    return KEPT


@pytest.fixture
def cache(tmp_path: Path) -> CodeCache:
    """Without any entry; the C library that zig compiles for itself, for seconds, is that of all
    sessions."""
    root, own = tmp_path / "cache", KEPT.root / "zig"
    own.mkdir(parents=True, exist_ok=True)
    root.mkdir()
    (root / "zig").symlink_to(own)
    return CodeCache(root)
