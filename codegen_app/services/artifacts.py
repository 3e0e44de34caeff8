"""Files by content, through Django's storage: a folder, or S3 where several hosts share it."""

from __future__ import annotations

import hashlib
import tempfile
from contextlib import suppress
from pathlib import Path

from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from codegen_app.models import Artifact


def store(data: bytes, suffix: str = "") -> Artifact:
    """Keep these bytes, once; the row whose content they are.

    ``suffix`` (``.s``, ``.so``) is only for people who look into the folder.
    """
    digest = hashlib.sha256(data).hexdigest()
    known = Artifact.objects.filter(digest=digest).first()
    if known is not None and default_storage.exists(known.path):
        return known
    path = f"sha256/{digest[:2]}/{digest}{suffix}"
    if not default_storage.exists(path):
        path = default_storage.save(path, ContentFile(data))
    artifact, _ = Artifact.objects.get_or_create(
        digest=digest, defaults={"size_bytes": len(data), "path": path}
    )
    return artifact


def store_file(path: Path) -> Artifact:
    """Keep a file's content."""
    return store(path.read_bytes(), path.suffix)


def read(artifact: Artifact) -> bytes:
    """The bytes; ``FileNotFoundError`` where they are missing from the storage."""
    with default_storage.open(artifact.path) as file:
        data: bytes = file.read()
    return data


def local_file(artifact: Artifact, suffix: str = "") -> Path:
    """A file on this host with the content: the storage's own, or a copy kept beside the cache."""
    with suppress(NotImplementedError):  # a storage that is no folder (S3)
        own = Path(default_storage.path(artifact.path))
        if own.exists():
            return own
    copy: Path = settings.VAR_DIR / "fetched" / f"{artifact.digest}{suffix}"
    _fetch(artifact, copy)
    return copy


def local_folder(artifact: Artifact, name: str) -> Path:
    """A folder on this host that holds the content under that name."""
    folder: Path = settings.VAR_DIR / "fetched" / artifact.digest
    _fetch(artifact, folder / name)
    return folder


def _fetch(artifact: Artifact, copy: Path) -> None:
    if copy.exists():
        return
    copy.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=copy.parent, delete=False) as part:
        part.write(read(artifact))
    Path(part.name).replace(copy)
