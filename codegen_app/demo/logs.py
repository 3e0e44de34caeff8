"""Logs that stay short, whoever holds them open."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

_MAX_BYTES = 5 << 20


def keep_short(log: Path, most_bytes: int = _MAX_BYTES) -> None:
    """Move what a log holds to ``<name>.1`` once it is long, and begin anew.

    The file itself stays, since its writer has it open (to append). Where the disk is too full for
    the older part, that part is given up.
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
