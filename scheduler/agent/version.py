"""Which worker and server versions can work together."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

import scheduler
from scheduler.build.cache import digest
from scheduler.version import kiln_version

#: The protocol version; incremented with each incompatible change.
PROTOCOL = 3


@cache
def generator_digest() -> str:
    """The digest of the kernel generator: the engine's own files and its symbolic math library.

    Equal digests generate equal kernels, so a kernel generated once is known without generating it
    again.
    """
    package = Path(scheduler.__file__).parent
    files = sorted(
        path for pattern in ("*.py", "*.jinja") for path in package.rglob(pattern) if path.is_file()
    )
    parts = [part for file in files for part in (str(file.relative_to(package)), file.read_bytes())]
    return digest(version("sympy"), *parts)


def versions() -> dict[str, str]:
    """Return the versions of the software here, for display."""
    python, machine = platform.python_version(), platform.machine()
    return {"kiln": kiln_version(), "python": python, "machine": machine}
