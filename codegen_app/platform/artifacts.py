"""Files by content: stored once, atomically, and checked at every use."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import IO

from django.conf import settings
from django.db.models.functions import Now
from django.utils import timezone

from codegen_app.platform import files
from codegen_app.platform.models import Artifact
from scheduler.files import disk_errors, write_atomic

# No sweep is that quick, and a row that is stored often is not written each time.
_FRESH = timedelta(hours=1)
_TEXT = frozenset({".s", ".ptx", ".json"})  # a tenth as large, compressed


def store(data: bytes, suffix: str = "") -> Artifact:
    """Store these bytes once and return the row with this content.

    A missing or damaged file is written again. ``suffix`` (``.s``, ``.so``) decides whether the
    file may be compressed; otherwise it only helps people who look into the folder. Raises
    ``MachineError`` when there is no room.
    """
    digest = files.digest_of(data)
    path = f"sha256/{digest[:2]}/{digest}{suffix}{files.COMPRESSED if suffix in _TEXT else ''}"
    artifact = _row(digest, len(data), path)
    if not files.is_intact(artifact.path, digest):
        files.write(artifact.path, data)
    return artifact


def store_large(content: IO[bytes], suffix: str) -> Artifact:
    """Store an open file's content in chunks; like ``store``, but never compressed."""
    digest = files.digest_of_file(content)
    size = content.seek(0, os.SEEK_END)
    path = f"sha256/{digest[:2]}/{digest}{suffix}"
    artifact = _row(digest, size, path)
    try:
        files.open_file(artifact.path, digest).close()
    except FileNotFoundError:
        files.write_file(artifact.path, content)
    return artifact


def _row(digest: str, size: int, path: str) -> Artifact:
    """Return the row and mark it as used, so that no sweep deletes it. It is marked before the file
    is checked; a sweep that is deleting the row is waited for."""
    while True:
        row, is_new = Artifact.objects.get_or_create(
            digest=digest, defaults={"size_bytes": size, "path": path}
        )
        if is_new or timezone.now() - row.used_at < _FRESH:
            return row
        if Artifact.objects.filter(pk=row.pk).update(used_at=Now()):
            return row


def store_file(path: Path) -> Artifact:
    """Store a file's content."""
    return store(path.read_bytes(), path.suffix)


def read(artifact: Artifact) -> bytes:
    """Return the bytes; ``FileNotFoundError`` if the storage lacks them or they are damaged."""
    return files.read(artifact.path, artifact.digest)


def is_whole(artifact: Artifact) -> bool:
    """Return whether the storage has the bytes."""
    return files.is_intact(artifact.path, artifact.digest)


def local_file(artifact: Artifact, suffix: str = "") -> Path:
    """Return a file on this host with the content: the storage's own file, or a cached copy.

    Raises ``FileNotFoundError`` if the content is missing or damaged.
    """
    stored = files.local_path(artifact.path)
    if stored is not None and not artifact.path.endswith(files.COMPRESSED):
        read(artifact)
        return stored
    copy = fetched_folder() / f"{artifact.digest}{suffix}"
    _fetch(artifact, copy)
    return copy


def local_folder(artifact: Artifact, name: str) -> Path:
    """Return a folder on this host that holds the content under that name."""
    folder = fetched_folder() / artifact.digest
    _fetch(artifact, folder / name)
    return folder


def fetched_folder() -> Path:
    """Return the folder of this host's copies of stored files; they can be fetched again."""
    folder: Path = settings.VAR_DIR / "fetched"
    return folder


def _fetch(artifact: Artifact, copy: Path) -> None:
    try:
        if files.digest_of(copy.read_bytes()) == artifact.digest:
            copy.touch()  # in use: do not sweep
            return
    except OSError:
        pass
    with disk_errors("fetched files", fetched_folder()):
        write_atomic(copy, read(artifact))
