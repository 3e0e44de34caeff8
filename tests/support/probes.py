"""Probes of the site that give nothing up, for tests that are not about that."""

from __future__ import annotations

import pytest

from codegen_app.platform import readiness
from tests.support.patience import PATIENCE_S


def wait_for_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the site asks of others may take as long as it does on a machine that does much else."""
    monkeypatch.setattr(readiness, "LIMIT_S", PATIENCE_S)
    for ask in (readiness.run_checks, readiness.database):  # theirs was set when they were defined
        monkeypatch.setattr(ask, "__defaults__", (PATIENCE_S,))
