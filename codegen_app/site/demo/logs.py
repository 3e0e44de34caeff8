"""Logs of limited size, whoever holds them open."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

_MAX_BYTES = 5 << 20


def keep_short(log: Path, most_bytes: int = _MAX_BYTES) -> None:
    """Move a long log's content to ``<name>.1``, and empty it.

    The file itself stays, since its writer has it open (to append). If the disk has no room for the
    older part, that part is dropped.
    """
    try:
        if log.stat().st_size <= most_bytes:
            return
    except FileNotFoundError:
        return
    older = log.with_name(f"{log.name}.1")
    try:
        shutil.copyfile(log, older)
    except OSError:
        with suppress(OSError):
            older.unlink(missing_ok=True)
    with suppress(OSError):
        log.open("r+b").truncate(0)
