"""How much memory the embedded PostgreSQL takes for the pages of its tables."""

from __future__ import annotations

import os
from pathlib import Path

_MIB = 1 << 20
# What a container may take: of the second version of control groups, and of the first.
_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_MIN_BYTES, _MAX_BYTES = 128 * _MIB, 1024 * _MIB


def shared_buffers(available: int | None = None) -> str:
    """The setting: a quarter of the memory (``available`` in bytes, else what this machine or its
    container has), between 128 MiB, which is PostgreSQL's own, and 1 GiB.

    A page that is not there is asked of the kernel, and room made for it by writing another: a
    batch of 10,000 points of as many series reads 10,000 pages of the index of histories and wrote
    as many with 128 MiB, on a database of ten million points; with 1 GiB it reads 400. It is taken
    as it is used, so a small database has little of it.
    """
    found = memory() if available is None else available
    return f"shared_buffers={min(max(found // 4, _MIN_BYTES), _MAX_BYTES) // _MIB}MB"


def memory() -> int:
    """Bytes that this machine has, or its container may take where that is less."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(whole, *(_limit(file, whole) for file in _LIMITS))


def _limit(file: Path, whole: int) -> int:
    try:
        text = file.read_text().strip()
    except OSError:  # there are no control groups, or of the other version
        return whole
    return int(text) if text.isdecimal() else whole
