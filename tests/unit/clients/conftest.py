"""Tests of the client run outside of CI and of any Git checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.git_repositories import leave_ci


@pytest.fixture(autouse=True)
def _outside_of_ci(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    leave_ci(monkeypatch, tmp_path)
