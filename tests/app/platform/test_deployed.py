"""``manage.py check --deploy``: clean where a site is set up whole, else naming what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PRODUCTION = {
    "DATABASE_URL": "postgresql://kiln:password@db.kiln.example:5432/kiln",  # it is not asked for
    "KILN_SECRET_KEY": "Uq3vX9mK2pR7tY5wZ8bN4cJ6fH1gL0dSxQ7zV2nB5rT8yW1k-E_",
    "KILN_HTTPS": "1",
    "KILN_ALLOWED_HOSTS": "kiln.example",
    "KILN_TRUSTED_ORIGINS": "https://kiln.example",
    "KILN_TRUSTED_PROXIES": "1",
    "KILN_SITE_URL": "https://kiln.example",
}


MANAGE = ("manage.py", "check", "--deploy", "--fail-level", "WARNING")
PAGES = (
    "-m",
    "gunicorn",
    "--config",
    "python:codegen_app.platform.config.web",
    "--bind",
    "127.0.0.1:0",
)
WORKER = ("-m", "celery", "--quiet", "-A", "codegen_app.platform.config.celery", "worker")


def started(
    command: tuple[str, ...], var: Path, **changes: str
) -> subprocess.CompletedProcess[str]:
    """A process of a site until it ends, in an environment of nobody else's: tests of browsers set
    DJANGO_ALLOW_ASYNC_UNSAFE, which is an error."""
    ours = ("KILN_", "DJANGO_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return subprocess.run(
        [sys.executable, *command],
        check=False,
        cwd=ROOT,
        env={**kept, **PRODUCTION, "KILN_VAR": str(var), **changes},
        capture_output=True,
        text=True,
    )


def checked(var: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    return started(MANAGE, var, **changes)


@pytest.mark.parametrize("command", [PAGES, WORKER], ids=["pages", "a worker"])
def test_what_cannot_be_used_is_said_in_one_line(command: tuple[str, ...], tmp_path: Path) -> None:
    done = started(command, tmp_path, KILN_WORK_LEASE_S="soon")
    assert done.returncode != 0
    assert done.stderr.splitlines() == ["kiln: KILN_WORK_LEASE_S='soon' is not a whole number"]


@pytest.mark.full
def test_a_production_environment_is_clean(tmp_path: Path) -> None:
    done = checked(tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("System check identified no issues")
    assert done.stderr == ""


@pytest.mark.full
def test_what_is_missing_is_named(tmp_path: Path) -> None:
    done = checked(tmp_path, KILN_SECRET_KEY="", KILN_TRUSTED_PROXIES="0", KILN_HTTPS="1")
    assert done.returncode != 0
    assert "KILN_SECRET_KEY is not set" in done.stderr
    assert "KILN_TRUSTED_PROXIES is not" in done.stderr
    assert "W008" in checked(tmp_path, KILN_HTTPS="0").stderr, "Django's own are asked, too"
