"""A worker's own folder: fetched files, by content, and results not yet delivered."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from scheduler.agent.protocol import Result, as_json, parse_message
from scheduler.errors import UserError
from scheduler.files import disk_errors, write_atomic

_JOURNAL = "undelivered.json"


@dataclass(frozen=True)
class Journal:
    """The lease that this worker holds, and results that the server may not have received."""

    lease: str
    results: tuple[Result, ...] = field(default=())


class Folder:
    """A worker's folder; ``path`` is used by one worker at a time. At most ``max_bytes`` of
    fetched files are kept."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self.path = path
        self._max_bytes = max_bytes
        with disk_errors("the worker's files", path):
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock: IO[bytes] = (path / "lock").open("ab")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"{path}: in use by another worker; give each worker its own folder"
            ) from None

    def file(self, digest: str, name: str, fetch: Callable[[], bytes]) -> Path:
        """Return the file with that content under that name; fetched if missing here or damaged.

        Raises ``UserError`` if the fetched content does not match.
        """
        path = self.path / "files" / digest / name
        try:
            if _digest(path.read_bytes()) == digest:
                os.utime(path.parent)  # in use: it is dropped last
                return path
        except OSError:
            pass
        data = fetch()
        if _digest(data) != digest:
            raise UserError(f"{digest}: the server sent a file with another hash")
        with disk_errors("fetched files", self.path):
            write_atomic(path, data)
        return path

    def sweep(self, used: Collection[str]) -> None:
        """Remove the least recently used files until the rest is within the limit."""
        entries = []
        for folder in (self.path / "files").glob("*"):
            size = sum(file.stat().st_size for file in folder.iterdir())
            entries.append((folder.name in used, folder.stat().st_mtime, size, folder))
        total_bytes = sum(size for _, _, size, _ in entries)
        for is_used, _, size, folder in sorted(entries, key=lambda entry: entry[:2]):
            if is_used or total_bytes <= self._max_bytes:
                return
            for file in folder.iterdir():
                file.unlink()
            folder.rmdir()
            total_bytes -= size

    def journal(self) -> Journal | None:
        """Return the journal of an earlier process; None if there is none or a host crash truncated
        it."""
        try:
            data = json.loads((self.path / _JOURNAL).read_bytes())
            return parse_message(data, Journal, _JOURNAL)
        except (OSError, ValueError, UserError):
            return None

    def save_journal(self, lease: str, results: Sequence[Result]) -> None:
        """Record undelivered results, before anything is sent."""
        data = json.dumps(as_json(Journal(lease, tuple(results))), allow_nan=False).encode()
        with disk_errors("the worker's results", self.path):
            write_atomic(self.path / _JOURNAL, data)

    def clear_journal(self) -> None:
        """Clear the journal: the lease is over."""
        with suppress(FileNotFoundError):
            (self.path / _JOURNAL).unlink()

    def close(self) -> None:
        """Release the folder for another worker."""
        self._lock.close()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
