"""The contents of a backup's folder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scheduler.errors import UserError
from scheduler.files import write_atomic
from scheduler.ir.codec import decode, make_codec

FORMAT = 1
_MANIFEST, _DUMP, _ARTIFACTS = "backup.json", "database.dump", "artifacts"
_NAME = re.compile(r"sha256/[0-9a-f]{2}/([0-9a-f]{64})(\.[\w.]+)?")


@dataclass(frozen=True)
class Manifest:
    """``migrations`` are the applied ones, as ``app.name``; ``artifacts`` counts the files,
    ``missing`` has the digests that the storage lacked."""

    made_at: str
    kiln: str
    migrations: tuple[str, ...]
    artifacts: int
    missing: tuple[str, ...]


def dump_file(folder: Path) -> Path:
    """Return the file of the database's dump."""
    return folder / _DUMP


def artifact_file(folder: Path, path: str) -> Path:
    """Return the copy of the storage's file ``path``."""
    return folder / _ARTIFACTS / path


def artifact_files(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield each copied artifact: its name in the storage, its digest, and the file. Files that no
    backup wrote are skipped."""
    root = folder / _ARTIFACTS
    for file in sorted(root.rglob("*")):
        match = _NAME.fullmatch(file.relative_to(root).as_posix())
        if match and file.is_file() and not file.is_symlink():
            yield match.group(0), match.group(1), file


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Mark the folder as a complete backup."""
    text = json.dumps({"format": FORMAT, **asdict(manifest)}, indent=1) + "\n"
    write_atomic(folder / _MANIFEST, text.encode())


def remove_manifest(folder: Path) -> None:
    """Mark the folder as an incomplete backup."""
    (folder / _MANIFEST).unlink(missing_ok=True)


def read_manifest(folder: Path) -> Manifest:
    """Return the folder's manifest; raises ``UserError`` if it is no complete backup of this
    format."""
    file = folder / _MANIFEST
    try:
        content: Any = json.loads(file.read_text())
    except FileNotFoundError:
        raise UserError(f"{folder} holds no whole backup: it has no {_MANIFEST}") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{file} cannot be read: {error}") from None
    if not isinstance(content, dict) or content.pop("format", None) != FORMAT:
        raise UserError(f"{file} is of another format than {FORMAT}: use the Kiln that wrote it")
    return decode(make_codec(), content, Manifest, f"{file} is damaged")
