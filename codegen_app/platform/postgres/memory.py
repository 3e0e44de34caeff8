"""The memory of the embedded PostgreSQL for the pages of its tables."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_MIB = 1 << 20
# A container's memory limit: in version 2 of control groups, and in version 1.
_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_MIN_BYTES, _MAX_BYTES = 128 * _MIB, 1024 * _MIB


def shared_buffers(available: int | None = None) -> str:
    """Return the setting: a quarter of the memory (``available`` in bytes, else that of this
    machine or its container), between 128 MiB, which is PostgreSQL's default, and 1 GiB.

    A missing page is read from the kernel, after another is written to make room: with 128 MiB, a
    batch of 10,000 points of as many series reads 10,000 pages of the index of histories and writes
    as many, on a database of ten million points; with 1 GiB it reads 400. The memory is taken as it
    is used, so a small database takes little.
    """
    total = memory() if available is None else available
    return f"shared_buffers={min(max(total // 4, _MIN_BYTES), _MAX_BYTES) // _MIB}MB"


def memory() -> int:
    """Return this machine's bytes, or its container's limit if that is less."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file in _LIMITS:
        with suppress(OSError):  # there are no control groups, or another version
            text = file.read_text().strip()
            limits += [int(text)] if text.isdecimal() else []
    return min(limits)
