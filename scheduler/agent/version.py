"""Which versions of a worker and of a server can work together."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

import scheduler
from scheduler.build.cache import digest
from scheduler.version import kiln_version

#: Of what is sent; one more with each change that the other side would not understand.
PROTOCOL = 3


@cache
def generator() -> str:
    """The digest of what makes kernels: the engine's own files and the library it reckons with.

    Equal digests make equal kernels, so that what was made once need not be made to know it.
    """
    package = Path(scheduler.__file__).parent
    files = sorted(
        path for kind in ("*.py", "*.jinja") for path in package.rglob(kind) if path.is_file()
    )
    parts = [part for f in files for part in (str(f.relative_to(package)), f.read_bytes())]
    return digest(version("sympy"), *parts)


def versions() -> dict[str, str]:
    """What runs here, for people."""
    python, machine = platform.python_version(), platform.machine()
    return {"kiln": kiln_version(), "python": python, "machine": machine}
