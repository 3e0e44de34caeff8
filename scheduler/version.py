"""Which version of Kiln this is: ``pyproject.toml`` says it, and nothing else."""

from __future__ import annotations

import tomllib
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


@cache
def kiln_version() -> str:
    """Of the checkout that runs, whatever is installed beside it; else of the installed package;
    "" where neither says it."""
    with suppress(OSError, ValueError, KeyError):
        project = tomllib.loads(_PYPROJECT.read_text("utf-8"))["project"]
        if project["name"] == "kiln":
            return str(project["version"])
    with suppress(PackageNotFoundError):
        return version("kiln")
    return ""
