"""The demo's maintenance: replacing silent workers, and removing old files."""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from django.db import DatabaseError, connection

from codegen_app.platform.postgres import Cluster
from codegen_app.site.demo.processes import Supervisor, keep_short
from codegen_app.site.demo.programs import worker_name
from codegen_app.workers.models import Worker

_POLL_EVERY_S = 10.0
# Twelve heartbeats; a worker that starts on a busy machine takes less, too.
_SILENCE_S = 120.0
_SWEEP_EVERY_S = 600.0
_OLD_S = 24 * 3600.0


class SilenceTracker:
    """How long each process has sent no heartbeat, on this process's own clock."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[datetime | None, float]] = {}

    def silent(
        self, pids: dict[int, str], signs: dict[int, datetime] | None, now: float
    ) -> Iterator[int]:
        """Yield the processes that have been silent for too long.

        ``signs`` are the last heartbeats by process; None while they are unknown, which counts
        against no process.
        """
        if signs is None:
            self._last.clear()
            return
        self._last = {pid: seen for pid, seen in self._last.items() if pid in pids}
        for pid in pids:
            sign = signs.get(pid)
            before, since = self._last.setdefault(pid, (sign, now))
            if sign != before:
                self._last[pid] = (sign, now)
            elif now - since >= _SILENCE_S:
                del self._last[pid]
                yield pid


class Sweeper:
    """Removes what killed processes left in a temporary folder, once nothing in it has changed for
    long on this process's own clock: a wall clock that jumps makes nothing old."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last: dict[Path, tuple[float, float]] = {}

    def sweep(self, now: float) -> None:
        """Check every entry of the folder."""
        seen: dict[Path, float] = {}
        with suppress(FileNotFoundError):
            for entry in self._folder.iterdir():
                with suppress(FileNotFoundError):  # it is being removed
                    seen[entry] = _last_touched(entry)
        self._last = {path: last for path, last in self._last.items() if path in seen}
        for path, touched in seen.items():
            before, since = self._last.setdefault(path, (touched, now))
            if touched != before:
                self._last[path] = (touched, now)
            elif now - since < _OLD_S:
                continue
            elif path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(OSError):
                    path.unlink()


def _last_touched(path: Path) -> float:
    """Return the newest modification time in a file or folder; ``FileNotFoundError`` if it
    vanishes."""
    newest = path.lstat().st_mtime
    if path.is_symlink():
        return newest
    for folder, _, files in os.walk(path):
        for name in (folder, *(str(Path(folder, file)) for file in files)):
            newest = max(newest, os.lstat(name).st_mtime)
    return newest


@dataclass
class Maintenance:
    """Replaces silent workers, and keeps folder and logs small; ``run_due`` is called often."""

    supervisor: Supervisor
    temporary: Path
    cluster: Cluster
    _silence: SilenceTracker = field(default_factory=SilenceTracker)
    _sweeper: Sweeper = field(init=False)
    _next_look: float = 0.0
    _next_sweep: float = 0.0

    def __post_init__(self) -> None:
        self._sweeper = Sweeper(self.temporary)

    def run_due(self, say: Callable[[str], None]) -> None:
        """Run what is due."""
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + _POLL_EVERY_S
            workers = {
                pid: program.name
                for pid, program in self.supervisor.pids().items()
                if worker_name(program)
            }
            for pid in self._silence.silent(workers, _signs_of_life(), now):
                say(f"{workers[pid]} gave no sign of life for {_SILENCE_S:g} s; it is ended")
                self.supervisor.kill(pid)
            keep_short(self.cluster.log)
        if now >= self._next_sweep:
            self._next_sweep = now + _SWEEP_EVERY_S
            self._sweeper.sweep(now)


def _signs_of_life() -> dict[int, datetime] | None:
    """Return the last heartbeat of each process of this host: the newest row of its number."""
    workers = Worker.objects.filter(host=socket.gethostname()).order_by("seen_at")
    try:
        return dict(workers.values_list("pid", "seen_at"))
    except DatabaseError:
        connection.close()
        return None
