"""Files by content: stored once, whole or not at all, checked whenever they are used."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import IO

from django.conf import settings
from django.db.models.functions import Now
from django.utils import timezone

from codegen_app import files
from codegen_app.models import Artifact
from scheduler.files import disk_errors, write_atomic

# No sweep is that quick, and what is stored often is not written to each time.
_FRESH = timedelta(hours=1)
_TEXT = frozenset({".s", ".ptx", ".json"})  # a tenth as large, compressed


def store(data: bytes, suffix: str = "") -> Artifact:
    """Keep these bytes, once; the row whose content they are.

    A file that is missing or damaged is written anew. ``suffix`` (``.s``, ``.so``) says what may
    be compressed, else it is for people who look into the folder. Raises ``MachineError`` where
    there is no room.
    """
    digest = files.digest_of(data)
    path = f"sha256/{digest[:2]}/{digest}{suffix}{files.COMPRESSED if suffix in _TEXT else ''}"
    artifact = _row(digest, len(data), path)
    if not files.is_intact(artifact.path, digest):
        files.write(artifact.path, data)
    return artifact


def store_large(content: IO[bytes], suffix: str) -> Artifact:
    """Keep an open file's content, a piece at a time; else as ``store``, and never compressed."""
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
    """The row, which no sweep takes for unused from now on: it is before the file is looked at,
    and a sweep that is just dropping it is waited for."""
    while True:
        row, is_new = Artifact.objects.get_or_create(
            digest=digest, defaults={"size_bytes": size, "path": path}
        )
        if is_new or timezone.now() - row.used_at < _FRESH:
            return row
        if Artifact.objects.filter(pk=row.pk).update(used_at=Now()):
            return row


def store_file(path: Path) -> Artifact:
    """Keep a file's content."""
    return store(path.read_bytes(), path.suffix)


def read(artifact: Artifact) -> bytes:
    """The bytes; ``FileNotFoundError`` where they are missing from the storage, or damaged."""
    return files.read(artifact.path, artifact.digest)


def is_whole(artifact: Artifact) -> bool:
    """Whether the storage has the bytes."""
    return files.is_intact(artifact.path, artifact.digest)


def local_file(artifact: Artifact, suffix: str = "") -> Path:
    """A file on this host with the content: the storage's own, or a copy kept beside the cache.

    ``FileNotFoundError`` where the content is missing or damaged.
    """
    own = files.local_path(artifact.path)
    if own is not None and not artifact.path.endswith(files.COMPRESSED):
        read(artifact)
        return own
    copy = fetched_folder() / f"{artifact.digest}{suffix}"
    _fetch(artifact, copy)
    return copy


def local_folder(artifact: Artifact, name: str) -> Path:
    """A folder on this host that holds the content under that name."""
    folder = fetched_folder() / artifact.digest
    _fetch(artifact, folder / name)
    return folder


def fetched_folder() -> Path:
    """Where copies of what the storage has are kept on this host; they can be fetched again."""
    folder: Path = settings.VAR_DIR / "fetched"
    return folder


def _fetch(artifact: Artifact, copy: Path) -> None:
    try:
        if files.digest_of(copy.read_bytes()) == artifact.digest:
            copy.touch()  # in use: not swept
            return
    except OSError:
        pass
    with disk_errors("fetched files", fetched_folder()):
        write_atomic(copy, read(artifact))
