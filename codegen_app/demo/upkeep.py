"""What the demo looks after while it runs: workers that went silent, and what piles up in files."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from django.db import DatabaseError, connection

from codegen_app.demo.logs import keep_short
from codegen_app.demo.processes import Supervisor
from codegen_app.demo.programs import worker_name
from codegen_app.models import Worker
from codegen_app.postgres import Cluster

_LOOK_EVERY_S = 10.0
# Twelve signs of life; a worker that starts on a busy machine takes less as well.
_SILENCE_S = 120.0
_SWEEP_EVERY_S = 600.0
_OLD_S = 6 * 3600.0


class Silence:
    """How long each process has given no new sign, on this process's own clock."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[datetime | None, float]] = {}

    def of(
        self, pids: dict[int, str], signs: dict[int, datetime] | None, now: float
    ) -> Iterator[int]:
        """The processes that have been silent for too long.

        ``signs`` are the last signs of life by process; None while nobody can tell, which counts
        against nobody.
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


@dataclass
class Upkeep:
    """Replaces silent workers, and keeps folder and logs small; ``look`` is called often."""

    supervisor: Supervisor
    temporary: Path
    cluster: Cluster
    _silence: Silence = field(default_factory=Silence)
    _next_look: float = 0.0
    _next_sweep: float = 0.0

    def look(self, say: Callable[[str], None]) -> None:
        """Do what is due."""
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + _LOOK_EVERY_S
            self._replace_silent(say)
            keep_short(self.cluster.log)
        if now >= self._next_sweep:
            self._next_sweep = now + _SWEEP_EVERY_S
            sweep(self.temporary, _OLD_S)

    def _replace_silent(self, say: Callable[[str], None]) -> None:
        workers = {
            pid: program.name
            for pid, program in self.supervisor.pids().items()
            if worker_name(program)
        }
        for pid in self._silence.of(workers, _signs_of_life(), time.monotonic()):
            say(f"{workers[pid]} gave no sign of life for {_SILENCE_S:g} s; it is ended")
            self.supervisor.kill(pid)


def _signs_of_life() -> dict[int, datetime] | None:
    try:
        return dict(Worker.objects.values_list("pid", "seen_at"))
    except DatabaseError:
        connection.close()
        return None


def sweep(folder: Path, older_s: float) -> None:
    """Remove what killed processes left in a temporary folder and nobody touched for long."""
    oldest = time.time() - older_s
    with suppress(FileNotFoundError):
        for entry in folder.iterdir():
            if _last_touched(entry) >= oldest:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                with suppress(OSError):
                    entry.unlink()


def _last_touched(path: Path) -> float:
    """The newest time of change in a file or folder; now, where it is going away itself."""
    newest = 0.0
    try:
        newest = path.lstat().st_mtime
        for folder, _, files in os.walk(path):
            for name in (folder, *(str(Path(folder, file)) for file in files)):
                newest = max(newest, os.lstat(name).st_mtime)
    except OSError:
        return time.time()
    return newest
