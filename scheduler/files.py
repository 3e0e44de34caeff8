"""Writing files that others trust: whole or not at all, also after a power cut."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from scheduler.outcome import MachineError

#: How an unfinished file's name ends; one that is old was left by a process that was killed.
PART = ".part"

_FULL = (errno.ENOSPC, errno.EDQUOT)
_NOT_WRITABLE = (errno.EACCES, errno.EROFS, errno.EPERM)


def write_whole(path: Path, data: bytes) -> None:
    """Write beside the path, to the disk, and rename: what was there before stays until then.

    Makes the folder. Raises ``OSError`` and leaves nothing behind where there is no room.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:80]}.", suffix=PART)
    part = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Bring a folder's names to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # a file system that cannot
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def disk_errors(what: str, root: Path) -> Iterator[None]:
    """A full disk, or a folder that cannot be written, as a ``MachineError`` with one line."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise MachineError(
                f"no space left for {what} in {root}: free some, or name another folder"
            ) from error
        if error.errno in _NOT_WRITABLE and not os.access(root, os.W_OK):
            raise MachineError(
                f"{what} {root} cannot be written: mend its permissions, or name another folder"
            ) from error
        raise
