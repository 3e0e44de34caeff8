"""Whole models through the whole engine: one code cache for all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.build.cache import CodeCache

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def cache() -> CodeCache:
    """Kept from run to run: its keys are contents, so nothing in it can be stale."""
    return CodeCache(ROOT / "var" / "tests" / "code-cache")
