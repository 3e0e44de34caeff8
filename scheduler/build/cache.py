"""The code cache: results keyed by the content that decides them, shared by any number of
processes.

An entry is a folder that appears by one rename, so a reader sees all of it or nothing. It stores
the digest of each of its files; an entry that does not match is set aside and made again.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scheduler.files import disk_errors, write_atomic

_ENTRY = "entry.json"
_CACHE_NAME = "the code cache"
_ABANDONED_AFTER_S = 24 * 3600
_JUST_USED_S = 3600
_OTHER_BOOTS_MAX_AGE_S = 30 * 24 * 3600  # hosts may share a cache
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_SHRINK_RATIO = 0.9


def digest(*parts: str | bytes) -> str:
    """Return SHA-256 over the parts, each with its length, so that different lists cannot
    collide."""
    result = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        result.update(len(data).to_bytes(8, "little"))
        result.update(data)
    return result.hexdigest()


@dataclass(frozen=True)
class Entry:
    """A finished entry: its folder, and the record written with it."""

    directory: Path
    record: Mapping[str, Any]


@dataclass(frozen=True)
class CodeCache:
    """A folder of entries. Nothing is kept in memory; constructing one does not touch the disk."""

    root: Path

    def get(self, key: str) -> Entry | None:
        """Return the entry with that key, verified; None if there is no intact one."""
        directory = self._entry_path(key)
        try:
            record = json.loads((directory / _ENTRY).read_bytes())
            for name, expected in record["files"].items():
                if hashlib.sha256((directory / name).read_bytes()).hexdigest() != expected:
                    return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        with suppress(OSError):  # its last use: a read-only disk stores none
            os.utime(directory / _ENTRY)
        return Entry(directory, record)

    @contextmanager
    def workspace(self) -> Iterator[Path]:
        """Yield an empty folder on the cache's own disk, removed afterwards."""
        with disk_errors(_CACHE_NAME, self.root):
            parent = self.root / "tmp"
            parent.mkdir(parents=True, exist_ok=True)
            directory = Path(tempfile.mkdtemp(dir=parent))
        try:
            with disk_errors(_CACHE_NAME, self.root):
                yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def put(self, key: str, files: Mapping[str, Path], record: Mapping[str, Any]) -> Entry:
        """Move the files into the cache. If another process was faster, its entry is kept."""
        directory = self._entry_path(key)
        with self.workspace() as work:
            new_entry = work / "new"
            new_entry.mkdir()
            digests = {}
            for name, source in files.items():
                source.replace(new_entry / name)
                digests[name] = hashlib.sha256((new_entry / name).read_bytes()).hexdigest()
            complete_record = {**record, "files": digests}
            (new_entry / _ENTRY).write_text(json.dumps(complete_record, indent=1, sort_keys=True))
            directory.parent.mkdir(parents=True, exist_ok=True)
            while True:
                try:
                    new_entry.rename(directory)
                    return Entry(directory, complete_record)
                except OSError as error:
                    if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                        raise
                existing = self.get(key)
                if existing is not None:
                    return existing
                with suppress(FileNotFoundError):  # another process may set it aside as well
                    directory.rename(work / "damaged")

    def compiler_cache(self) -> Path:
        """The folder of the compilers' own caches, one for each boot: they are not synced to the
        disk, and one that a power failure damaged fails every later build."""
        boot = "boot"  # not Linux
        with suppress(OSError):
            boot = _BOOT_ID.read_text().strip()
        folder = (self.root / "zig" / boot).absolute()
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            _remove_old(folder.parent, _OTHER_BOOTS_MAX_AGE_S)
        return folder

    def note(self, key: str) -> str | None:
        """Return a short text stored under that key, such as a compiler's version."""
        try:
            return (self.root / "notes" / key).read_text() or None
        except (OSError, UnicodeDecodeError):
            return None

    def write_note(self, key: str, text: str) -> None:
        with disk_errors(_CACHE_NAME, self.root):
            write_atomic(self.root / "notes" / key, text.encode())

    def sweep(self) -> None:
        """Remove leftovers of killed processes once they are a day old."""
        with suppress(FileNotFoundError):
            _remove_old(self.root / "tmp", _ABANDONED_AFTER_S)

    def shrink(self, limit_bytes: int, *, dry_run: bool = False) -> int:
        """If all entries exceed the limit, remove the least recently used until they take nine
        tenths of it, and return how many. Recently used ones stay."""
        entries = []
        for directory in (self.root / "builds").glob("*/*"):
            last_use_s, size = 0.0, 0  # the last use, in seconds since 1970, and bytes
            with suppress(FileNotFoundError, NotADirectoryError):
                for file in directory.iterdir():
                    status = file.stat()
                    size += status.st_size
                    last_use_s = max(last_use_s, status.st_mtime)
            entries.append((last_use_s, size, directory))
        total = sum(size for _, size, _ in entries)
        removed = 0
        if total <= limit_bytes:
            return removed
        for last_use_s, size, directory in sorted(entries):
            if total <= _SHRINK_RATIO * limit_bytes or last_use_s > time.time() - _JUST_USED_S:
                break
            total -= size
            removed += 1
            if not dry_run:
                # By one rename, so that no reader sees a part of it. Another process may be faster.
                with self.workspace() as work, suppress(FileNotFoundError):
                    directory.rename(work / "old")
        return removed

    def _entry_path(self, key: str) -> Path:
        return self.root / "builds" / key[:2] / key


def _remove_old(folder: Path, max_age_s: float) -> None:
    """Remove what is in a folder and was changed more than so many seconds ago."""
    for path in folder.iterdir():
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > max_age_s:
                shutil.rmtree(path, ignore_errors=True)
