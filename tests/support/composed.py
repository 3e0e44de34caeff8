"""deploy/compose.yaml as Docker Compose reads it."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
FILLED_IN = {
    "KILN_HOST": "kiln.example",
    "TLS_FOLDER": "/etc/kiln/tls",
    "KILN_SECRET_KEY": "5f1d8c0b7a3e49d2860c1f7eab94d3517c2e6a08f4b95d13e07c8a6b2f9d4e15",
    "POSTGRES_PASSWORD": "0e9c71a4",
}


@lru_cache(maxsize=1)
def command() -> tuple[str, ...]:
    """Docker's plug-in, or the program that there was before it; nothing where there is neither."""
    for one in (("docker", "compose"), ("docker-compose",)):
        if shutil.which(one[0]):
            tried = subprocess.run([*one, "version"], check=False, capture_output=True)
            if tried.returncode == 0:
                return one
    return ()


def config(*options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """What it says of the file with these variables, and no others of Kiln's."""
    names = {*FILLED_IN, *(line.partition("=")[0].strip("#") for line in example())}
    ours = ("KILN_", "OTEL_")
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in names and not name.startswith(ours)
    }
    return subprocess.run(
        [*command(), "--file", str(DEPLOY / "compose.yaml"), *options, "config"],
        check=False,
        cwd=DEPLOY,
        env=kept | variables,
        capture_output=True,
        text=True,
    )


def services() -> dict[str, Any]:
    """All of them, with every profile's and the variables filled in."""
    done = config("--profile", "amd", "--profile", "nvidia", **FILLED_IN)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = yaml.safe_load(done.stdout)["services"]
    return found


def example() -> list[str]:
    """The settings of compose.env.example, those in comments too."""
    lines = (DEPLOY / "compose.env.example").read_text().splitlines()
    return [line for line in lines if "=" in line and not line.startswith("# ")]
