"""Files that rows name by the digest of their content, in Django's storage: a folder, or S3.

Content is checked when read: a truncated or damaged file counts as missing.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import IO

from django.core.files.base import ContentFile, File
from django.core.files.storage import FileSystemStorage, default_storage

from scheduler.errors import MachineError
from scheduler.files import Content, disk_errors, write_atomic

#: The suffix of a compressed file's name; the digest is that of the uncompressed content.
COMPRESSED = ".gz"

_PIECE = 1 << 20  # bytes read at a time


class MissingFileError(FileNotFoundError):
    """The storage has no file of that name any more."""


class DamagedFileError(MissingFileError):
    """The storage's file of that name is not what was stored."""


class StorageAwayError(MachineError):
    """The storage does not answer, or refuses: it is unknown whether it has a file."""


def digest_of(data: bytes) -> str:
    """Return the digest that names a file with this content."""
    return hashlib.sha256(data).hexdigest()


def read(path: str, digest: str) -> bytes:
    """Return the content; ``MissingFileError`` if there is none, ``DamagedFileError`` if it is not
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


def digest_of_file(file: IO[bytes]) -> str:
    """Return the digest of an open file, read in chunks from its beginning."""
    file.seek(0)
    digest = hashlib.sha256()
    while part := file.read(_PIECE):
        digest.update(part)
    return digest.hexdigest()


def open_file(path: str, digest: str) -> IO[bytes]:
    """Return the stored file, open at its beginning, for uncompressed content that is too large for
    memory; raises as ``read`` does."""
    try:
        file: IO[bytes] = default_storage.open(path, "rb")
    except FileNotFoundError as error:
        raise MissingFileError(f"{path} is missing from the storage") from error
    if local_path(path) is None:  # the fetched copy that was checked is returned
        is_intact = digest_of_file(file) == digest
        file.seek(0)
    else:
        is_intact = _is_intact_since(path, digest, default_storage.get_modified_time(path))
    if not is_intact:
        file.close()
        raise DamagedFileError(f"{path} is damaged in the storage: its digest is another")
    return file


@lru_cache(maxsize=256)
def _is_intact_since(path: str, digest: str, _changed: datetime) -> bool:
    """Check the file, cached for all downloads: until it is written again, it is the same."""
    with default_storage.open(path, "rb") as file:
        return digest_of_file(file) == digest


def is_intact(path: str, digest: str) -> bool:
    """Return whether the storage has that content."""
    try:
        read(path, digest)
    except MissingFileError:
        return False
    return True


def write_file(path: str, content: IO[bytes]) -> None:
    """Write an open file's whole content like ``write``, in chunks, without compression."""
    _put(path, content)


def write(path: str, data: bytes) -> None:
    """Store the content in place of any earlier one, atomically.

    Raises ``MachineError`` if there is no room, or the storage cannot be written.
    """
    _put(path, gzip.compress(data, mtime=0) if path.endswith(COMPRESSED) else data)


def _put(path: str, content: Content) -> None:
    place = local_path(path)
    if place is not None:
        with disk_errors("artifacts", Path(default_storage.path(""))):
            write_atomic(place, content)
        return
    if isinstance(content, bytes):
        stored: File[bytes] = ContentFile(content)
    else:
        content.seek(0)
        stored = File(content)
    if not getattr(default_storage, "file_overwrite", False) and default_storage.exists(path):
        default_storage.delete(path)  # a storage that does not overwrite uses another name
    saved = default_storage.save(path, stored)
    if saved != path:
        default_storage.delete(saved)
        raise StorageAwayError(f"the storage renamed {path}: it was written twice at once; retry")


def local_path(path: str) -> Path | None:
    """Return the file's path on this host; None if the storage is no folder."""
    if isinstance(default_storage, FileSystemStorage):
        return Path(default_storage.path(path))
    return None
