"""Atomic, durable file writes: a file is complete or absent, even after a power failure."""

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

#: Suffix of an unfinished file's name; an old one was left behind by a killed process.
PARTIAL_SUFFIX = ".part"

#: Error numbers of conditions that may be temporary.
TRANSIENT_ERRNOS = frozenset(
    {
        *(errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ENOMEM, errno.EAGAIN),
        *(errno.EMFILE, errno.ENFILE),
    }
)

_CHUNK_BYTES = 1 << 20  # bytes copied at a time
_DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT)
_NOT_WRITABLE_ERRNOS = (errno.EACCES, errno.EROFS, errno.EPERM)


Content: TypeAlias = bytes | IO[bytes]
"""Bytes, or an open file, which is copied from its beginning in chunks."""


def write_atomic(path: Path, data: Content) -> None:
    """Replace ``path`` atomically: the old content stays until the new content is on the disk.

    Creates the folder. Raises ``OSError`` and leaves nothing behind if the disk is full.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not _write_tmpfile(folder, path.name, data):
            _write_and_rename(path, data)
        with suppress(OSError):  # the file system does not support it
            os.fsync(folder)
    finally:
        os.close(folder)


def _write_tmpfile(folder: int, name: str, data: Content) -> bool:
    """Write an unnamed file and link it when complete, so that a killed process leaves nothing.

    Returns False if the name exists already, or if the file system has no ``O_TMPFILE``.
    """
    try:
        descriptor = os.open(".", os.O_TMPFILE | os.O_WRONLY, 0o644, dir_fd=folder)
    except OSError as error:
        if error.errno in _DISK_FULL_ERRNOS:
            raise
        return False
    with os.fdopen(descriptor, "wb") as file:
        _write_content(file, data)
        try:
            # With ``dst_dir_fd`` Python follows the link to the file.
            os.link(f"/proc/self/fd/{descriptor}", name, dst_dir_fd=folder)
        except OSError as error:
            if error.errno in _DISK_FULL_ERRNOS:
                raise
            return False
    return True


def _write_and_rename(path: Path, data: Content) -> None:
    descriptor, name = tempfile.mkstemp(
        dir=path.parent, prefix=f".{path.name[:80]}.", suffix=PARTIAL_SUFFIX
    )
    partial_path = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            _write_content(file, data)
        partial_path.replace(path)
    except BaseException:
        partial_path.unlink(missing_ok=True)
        raise


def _write_content(file: IO[bytes], data: Content) -> None:
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
    """Raise a one-line ``MachineError`` for a full disk or a folder that cannot be written."""
    try:
        yield
    except OSError as error:
        if error.errno in _DISK_FULL_ERRNOS:
            raise MachineError(
                f"no space left for {what} in {root}: free some space, or choose another folder"
            ) from error
        if error.errno in _NOT_WRITABLE_ERRNOS and not os.access(root, os.W_OK):
            raise MachineError(
                f"cannot write {what} in {root}: fix its permissions, or choose another folder"
            ) from error
        raise
