"""Writing files that others trust: whole or not at all, also after a power cut."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TypeAlias

from scheduler.errors import MachineError

#: How an unfinished file's name ends; one that is old was left by a process that was killed.
PARTIAL_SUFFIX = ".part"

#: What a machine may lack for a while.
TRANSIENT_ERRNOS = frozenset(
    {
        *(errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ENOMEM, errno.EAGAIN),
        *(errno.EMFILE, errno.ENFILE),
    }
)

_CHUNK_BYTES = 1 << 20  # bytes copied at a time
_FULL = (errno.ENOSPC, errno.EDQUOT)
_NOT_WRITABLE = (errno.EACCES, errno.EROFS, errno.EPERM)


Content: TypeAlias = bytes | IO[bytes]
"""Bytes, or an open file from its beginning, which is copied a piece at a time."""


def write_atomic(path: Path, data: Content) -> None:
    """Write beside the path, to the disk, and rename: what was there before stays until then.

    Makes the folder. Raises ``OSError`` and leaves nothing behind where there is no room.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not _write_tmpfile(folder, path.name, data):
            _write_and_rename(path, data)
        with suppress(OSError):  # a file system that cannot
            os.fsync(folder)
    finally:
        os.close(folder)


def _write_tmpfile(folder: int, name: str, data: Content) -> bool:
    """Write a file that has no name until it is whole: nothing is left of it where the process is
    killed. False where there is such a file already, or the file system has no such files."""
    try:
        descriptor = os.open(".", os.O_TMPFILE | os.O_WRONLY, 0o644, dir_fd=folder)
    except OSError as error:
        if error.errno in _FULL:
            raise
        return False
    with os.fdopen(descriptor, "wb") as file:
        _fill(file, data)
        try:
            # With a folder's descriptor Python follows the link to the file.
            os.link(f"/proc/self/fd/{descriptor}", name, dst_dir_fd=folder)
        except OSError as error:
            if error.errno in _FULL:
                raise
            return False
    return True


def _write_and_rename(path: Path, data: Content) -> None:
    descriptor, name = tempfile.mkstemp(
        dir=path.parent, prefix=f".{path.name[:80]}.", suffix=PARTIAL_SUFFIX
    )
    part = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            _fill(file, data)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _fill(file: IO[bytes], data: Content) -> None:
    if isinstance(data, bytes):
        file.write(data)
    else:
        data.seek(0)
        shutil.copyfileobj(data, file, _CHUNK_BYTES)
    file.flush()
    os.fchmod(file.fileno(), 0o644)
    os.fsync(file.fileno())


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
