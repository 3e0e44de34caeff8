"""The demo's processes: started in their own sessions, watched, and stopped completely.

The supervisor makes itself the subreaper of its descendants (Linux), so that a process whose parent
died is still found. A killed supervisor's direct children are killed with it, and what these leave
behind carries a mark in its environment by which the next supervisor finds it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

# linux/prctl.h
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_MARK = "KILN_SUPERVISED"
_GRACE_S = 2.0
# A program that ends repeatedly is restarted with growing pauses, which are reset once it stayed
# up.
_STABLE_S = 60.0
_MAX_PAUSE_S = 30.0
_MAX_LOG_BYTES = 5 << 20


@dataclass(frozen=True)
class Program:
    """A program: a name for people and for the log file, and the command."""

    name: str
    command: Sequence[str]


@dataclass
class _Running:
    program: Program
    process: subprocess.Popen[bytes]
    since: float  # on the monotonic clock
    restarts: int = 0
    again_at: float | None = None  # the time of the next start

    def pause_s(self) -> float:
        """Return no pause after the first end; then 1, 2, 4 … seconds."""
        return min(2.0 ** (self.restarts - 1), _MAX_PAUSE_S) if self.restarts else 0.0


@dataclass
class Supervisor:
    """Runs programs; each logs to ``logs/<name>.log``, which one supervisor uses at a time.

    A new supervisor ends what a killed one with the same ``logs`` left behind.
    """

    cwd: Path
    logs: Path
    environment: Mapping[str, str]
    _running: list[_Running] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.logs.mkdir(parents=True, exist_ok=True)
        # What a killed supervisor left behind has the same mark in its environment.
        variable = f"{_MARK}={self._mark}".encode()
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                with suppress(OSError):  # it ended meanwhile, or belongs to another user
                    if variable in (folder / "environ").read_bytes().split(b"\0"):
                        _kill(int(folder.name))
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)

    def start(self, program: Program) -> None:
        """Start a program; raises ``OSError`` if that fails."""
        self._running.append(_Running(program, self._spawn(program), time.monotonic()))

    def log_of(self, name: str) -> Path:
        """Return the file with a program's output."""
        return self.logs / f"{name}.log"

    def ended(self, name: str) -> bool:
        """Return whether the program of that name has ended."""
        return any(
            running.program.name == name and running.process.poll() is not None
            for running in self._running
        )

    def watch(self, say: Callable[[str], None]) -> None:
        """Restart what ended by itself, and keep the logs short; call it about every second."""
        now = time.monotonic()
        for running in self._running:
            name = running.program.name
            keep_short(self.log_of(name))
            status = running.process.poll()
            if status is None:
                continue
            if running.again_at is None:
                if now - running.since >= _STABLE_S:
                    running.restarts = 0
                pause = running.pause_s()
                running.restarts += 1
                running.again_at = now + pause
                when = f" in {pause:g} s" if pause else ""
                say(f"{name} ended with {status} ({self.log_of(name)}); restarting it{when}")
            if now < running.again_at:
                continue
            try:
                running.process = self._spawn(running.program)
            except OSError as error:  # no memory, no room: try later
                say(f"{name} cannot be started: {error.strerror or error}")
                running.again_at = now + _MAX_PAUSE_S
            else:
                running.since, running.again_at = now, None
        _reap({running.process.pid for running in self._running})

    def pids(self) -> dict[int, Program]:
        """Return the running programs by process id."""
        return {
            running.process.pid: running.program
            for running in self._running
            if running.process.poll() is None
        }

    def kill(self, pid: int) -> None:
        """Kill a program that does not answer; ``watch`` restarts it."""
        if pid in self.pids():
            _kill(pid)

    def stop(self) -> None:
        """End every process that was started here, and its descendants."""
        deadline = time.monotonic() + _GRACE_S
        for running in self._running:
            if running.process.poll() is None:
                running.process.terminate()
        for running in self._running:
            try:
                running.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                continue  # it is ended with the rest
        while remaining := descendants(os.getpid()):
            for pid in remaining:
                _kill(pid)
            for running in self._running:
                running.process.poll()
            _reap(frozenset())
            time.sleep(0.02)
        _reap(frozenset())  # a container's first process may not reap zombies
        self._running.clear()

    @property
    def _mark(self) -> str:
        return str(self.logs.resolve())

    def _spawn(self, program: Program) -> subprocess.Popen[bytes]:
        with self.log_of(program.name).open("ab") as log:
            return subprocess.Popen(
                program.command,
                cwd=self.cwd,
                env={**self.environment, _MARK: self._mark},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches the supervisor alone
                # This process has no threads.
                preexec_fn=partial(_prctl, _PR_SET_PDEATHSIG, signal.SIGKILL),  # noqa: PLW1509
            )


def descendants(root: int) -> list[int]:
    """Return the process ids of all living descendants (a zombie is not alive)."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            stat = (folder / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile
        state, parent = stat.rpartition(")")[2].split()[:2]
        if state != "Z":
            children.setdefault(int(parent), []).append(int(folder.name))
    processes: list[int] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        processes += below
        waiting += below
    return processes


def _reap(keep: Collection[int]) -> None:
    """Reap adopted orphans, but not processes that Popen waits for."""
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid in keep:
            return
        os.waitpid(ended.si_pid, 0)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def keep_short(log: Path, most_bytes: int = _MAX_LOG_BYTES) -> None:
    """Move a long log's content to ``<name>.1``, and empty it.

    The file itself stays, since its writer has it open (to append). If the disk has no room for the
    older part, that part is dropped.
    """
    try:
        if log.stat().st_size <= most_bytes:
            return
    except FileNotFoundError:
        return
    older = log.with_name(f"{log.name}.1")
    try:
        shutil.copyfile(log, older)
    except OSError:
        with suppress(OSError):
            older.unlink(missing_ok=True)
    with suppress(OSError):
        log.open("r+b").truncate(0)
