"""``manage.py check --deploy``: clean where a site is set up whole, else naming what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCTION = {
    "DATABASE_URL": "postgresql://kiln:password@db.kiln.example:5432/kiln",  # it is not asked for
    "KILN_SECRET_KEY": "Uq3vX9mK2pR7tY5wZ8bN4cJ6fH1gL0dSxQ7zV2nB5rT8yW1k-E_",
    "KILN_HTTPS": "1",
    "KILN_ALLOWED_HOSTS": "kiln.example",
    "KILN_TRUSTED_ORIGINS": "https://kiln.example",
    "KILN_TRUSTED_PROXIES": "1",
    "KILN_SITE_URL": "https://kiln.example",
}


def checked(var: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    ours = (
        "KILN_",
        "DJANGO_",
    )  # a browser's tests set DJANGO_ALLOW_ASYNC_UNSAFE, which is an error
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        check=False,
        cwd=ROOT,
        env={**kept, **PRODUCTION, "KILN_VAR": str(var), **changes},
        capture_output=True,
        text=True,
    )


def test_a_production_environment_is_clean(tmp_path: Path) -> None:
    done = checked(tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("System check identified no issues")
    assert done.stderr == ""


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    done = checked(tmp_path, KILN_SECRET_KEY="", KILN_TRUSTED_PROXIES="0", KILN_HTTPS="1")
    assert done.returncode != 0
    assert "KILN_SECRET_KEY is not set" in done.stderr
    assert "KILN_TRUSTED_PROXIES is not" in done.stderr
    assert "W008" in checked(tmp_path, KILN_HTTPS="0").stderr, "Django's own are asked, too"
