"""The code cache of the tests, kept from run to run and shared by all checkouts of a user."""

from __future__ import annotations

import os
from pathlib import Path

from scheduler.build.cache import CodeCache

_USERS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")

# Its keys are contents, so nothing in it can be stale; a second run compiles nothing.
KEPT = CodeCache(Path(os.environ.get("KILN_TEST_CACHE") or _USERS / "kiln" / "tests"))
MOST_BYTES = 4 << 30


def empty_cache(folder: Path) -> Path:
    """A code cache without builds. It shares the C library that the bundled compiler builds for
    itself, which takes six seconds."""
    compilers = KEPT.root / "zig"
    compilers.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "zig").symlink_to(compilers)
    return folder
