"""Whether a native bundle may run here: code from other machines only if the user agrees."""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path

from scheduler.build.cache import CodeCache
from scheduler.build.model import Build
from scheduler.build.recipe import library_of
from scheduler.bundle.reader import Bundle
from scheduler.errors import UserError

# One per user, independent of ``--cache``.
_CACHE_FOLDER = Path.home() / ".cache" / "kiln"
_NOTE = "compiled here"


def add_trust(parser: argparse.ArgumentParser) -> None:
    """Add the option that answers the question in advance."""
    parser.add_argument(
        "--trust",
        action="store_true",
        help="run native code even if this user did not compile it here",
    )


def record_builds(builds: Iterable[Build]) -> None:
    """Record that libraries were compiled here: no bundle that contains them needs ``--trust``."""
    cache = CodeCache(_CACHE_FOLDER)
    for build in builds:
        key = _key(library_of(build))
        if cache.note(key) is None:
            cache.write_note(key, _NOTE)


def confirm_trust(bundle: Bundle, target: str, trusted: bool) -> None:
    """Return if the bundle's libraries for a target may be run.

    Raises ``UserError`` if one was not compiled here and the user does not agree to run it.
    """
    libraries = [bundle.library(kernel, target) for kernel in bundle.manifest.kernels]
    cache = CodeCache(_CACHE_FOLDER)
    unknown_libraries = [library for library in libraries if cache.note(_key(library)) != _NOTE]
    if not unknown_libraries or trusted:
        return
    problem = (
        f"{bundle.folder}: {len(unknown_libraries)} of {len(libraries)} kernels for {target}"
        " are native code that was not compiled here by this user"
    )
    if not sys.stdin.isatty():
        raise UserError(f"{problem}: add --trust to run them, or compile the model yourself")
    from scheduler.sandbox import sandbox_status  # noqa: PLC0415 -- slow, and needed only here

    missing = ", ".join(part.name for part in sandbox_status().missing)
    sandbox = (
        f"The sandbox is incomplete on this machine; missing: {missing}."
        if missing
        else "They run in a sandbox: no other files, no network, no other processes."
    )
    sys.stderr.write(f"{problem}.\n{sandbox}\nRun them? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UserError(f"{bundle.folder}: nothing was run")


def _key(library: Path) -> str:
    return f"library-{hashlib.sha256(library.read_bytes()).hexdigest()}"
