"""Whole installations for tests: a database, a folder, and commands in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from tests.app.processes import ROOT, worker_environment

BROKER = "database://localhost"


@dataclass(frozen=True)
class Installation:
    """A database, which may be empty, a folder of its own, and further variables."""

    var: Path
    url: str
    more: Mapping[str, str] = field(default_factory=dict)

    def manage(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """A command there."""
        own = {"DATABASE_URL": self.url, **self.more}
        environment = worker_environment(self.var, BROKER) | own
        return subprocess.run(
            [sys.executable, "manage.py", *map(str, arguments)],
            check=False,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
        )

    def value(self, query: str) -> object:
        """The one value that its database answers."""
        with psycopg.connect(self.url) as made:
            row = made.execute(query.encode()).fetchone()
        assert row is not None
        return row[0]
