"""A PostgreSQL of the benchmark's own, in a folder that is given."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg

from codegen_app.platform import postgres
from codegen_app.platform.postgres import Cluster

ROOT = Path(__file__).resolve().parents[3]
_DATABASE = "kiln_tracking"
# While it is built nothing has to outlive a crash: it would be built again.
BUILDING = (
    *("fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off"),
    *("max_wal_size=8GB", "maintenance_work_mem=1GB"),
)


@dataclass(frozen=True)
class Place:
    """The folder of a benchmark: its cluster and what the application writes."""

    folder: Path

    @property
    def var(self) -> Path:
        """The application's files."""
        return self.folder / "var"

    @property
    def built(self) -> Path:
        """There once the database is complete."""
        return self.folder / "built"

    @property
    def cluster(self) -> Cluster:
        """Its server; root's runs as the system user, as everywhere."""
        usual = postgres.cluster_for(self.var, "tracking")
        return replace(usual, home=self.folder / "postgres", sockets=self.folder / "run")

    @property
    def url(self) -> str:
        """The database's address."""
        return self.cluster.url(_DATABASE)

    def environment(self) -> dict[str, str]:
        """For Kiln's processes: pages are rendered anew for each request, and a token may send as
        much as the server takes."""
        return {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "codegen_app.platform.config.settings",
            "DATABASE_URL": self.url,
            "KILN_VAR": str(self.var),
            "KILN_SECRET_KEY": self._secret(),
            "KILN_PAGES_KEPT_MIB": "0",
            "KILN_API_POINTS_A_MINUTE": "100000000",
            "KILN_API_REQUESTS_A_MINUTE": "100000",
        }

    def start(self, options: Sequence[str] = ()) -> None:
        """The database's server, with its usual settings and these."""
        self.var.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        postgres.start(self.cluster, options)

    def stop(self) -> None:
        """The database's server, in good order."""
        postgres.stop(self.cluster)

    def create(self) -> None:
        """An empty database with Kiln's tables."""
        self.built.unlink(missing_ok=True)
        with psycopg.connect(self.cluster.url("postgres"), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {_DATABASE}")
            connection.execute(f"CREATE DATABASE {_DATABASE}")
        self.manage("migrate", "--verbosity=0")

    def manage(self, *command: str) -> None:
        """A command of the application."""
        whole = [sys.executable, "manage.py", *command]
        subprocess.run(whole, cwd=ROOT, env=self.environment(), check=True)

    def remove(self) -> None:
        """Everything."""
        self.stop()
        shutil.rmtree(self.folder)

    def _secret(self) -> str:
        file = self.var / "secret"
        if not file.exists():
            self.var.mkdir(parents=True, exist_ok=True)
            file.write_text(secrets.token_urlsafe(48))
        return file.read_text()
