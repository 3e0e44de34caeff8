"""Patience: what a journey waits for is done by real workers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import PATIENCE_MS

LONG_MS = 240_000  # a real compiler and a real measurement, on a machine that does much else


@pytest.fixture(autouse=True)
def _patience() -> Iterator[None]:
    expect.set_options(timeout=LONG_MS)
    yield
    expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture
def page(page: Page) -> Page:
    """As elsewhere, with the same patience."""
    page.set_default_timeout(LONG_MS)
    return page
