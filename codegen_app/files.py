"""Files that rows name by the digest of their content, in Django's storage: a folder, or S3.

What is read is checked: a file that is cut off or damaged counts as missing.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from pathlib import Path

from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, default_storage

from scheduler.files import disk_errors, write_whole

#: How the name of a compressed file ends; the digest is that of what was compressed.
COMPRESSED = ".gz"


class MissingFileError(FileNotFoundError):
    """The storage has no file of that name any more."""


class DamagedFileError(MissingFileError):
    """The storage has something else under that name than what was stored there."""


def digest_of(data: bytes) -> str:
    """What a file with this content is found by."""
    return hashlib.sha256(data).hexdigest()


def read(path: str, digest: str) -> bytes:
    """The content; ``MissingFileError`` where there is none, ``DamagedFileError`` where it is not
    what was stored."""
    try:
        with default_storage.open(path, "rb") as file:
            data: bytes = file.read()
    except FileNotFoundError as error:
        raise MissingFileError(f"{path} is missing from the storage") from error
    if path.endswith(COMPRESSED):
        try:
            data = gzip.decompress(data)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise DamagedFileError(f"{path} is damaged in the storage: {error}") from error
    if digest_of(data) != digest:
        raise DamagedFileError(f"{path} is damaged in the storage: its digest is another")
    return data


def is_whole(path: str, digest: str) -> bool:
    """Whether the storage has that content."""
    try:
        read(path, digest)
    except MissingFileError:
        return False
    return True


def write(path: str, data: bytes) -> None:
    """Put the content there in place of whatever lies there: all of it or nothing.

    Raises ``MachineError`` where there is no room, or the folder cannot be written.
    """
    stored = gzip.compress(data, mtime=0) if path.endswith(COMPRESSED) else data
    folder = in_folder(path)
    if folder is not None:
        with disk_errors("artifacts", Path(default_storage.path(""))):
            write_whole(folder, stored)
        return
    if default_storage.exists(path):
        default_storage.delete(path)
    default_storage.save(path, ContentFile(stored))


def in_folder(path: str) -> Path | None:
    """Where the file lies on this host; None where the storage is no folder."""
    if isinstance(default_storage, FileSystemStorage):
        return Path(default_storage.path(path))
    return None
