"""The version of Kiln; ``pyproject.toml`` is its only source."""

from __future__ import annotations

import tomllib
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


@cache
def kiln_version() -> str:
    """Return the version of the running checkout, else of the installed package, else "".

    The checkout takes precedence over any installed package.
    """
    with suppress(OSError, ValueError, KeyError):
        project = tomllib.loads(_PYPROJECT.read_text("utf-8"))["project"]
        if project["name"] == "kiln":
            return str(project["version"])
    with suppress(PackageNotFoundError):
        return version("kiln")
    return ""
