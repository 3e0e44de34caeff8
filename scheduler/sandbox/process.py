"""Run a compiler or another command: no shell, limits on time, memory and output, and cancellation
from outside."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from scheduler import sandbox

GIB = 1 << 30
# Signals that a program does not cause itself: the system is out of memory, or someone sent them.
_EXTERNAL_SIGNALS = frozenset(
    {signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}
)
#: Output of a compiler that crashed or reported an error.
_CRASH_OUTPUT = re.compile(rb"Stack dump|LLVM ERROR|[Aa]ssert|PLEASE submit|panic|error:")


class Cancelled(Exception):  # noqa: N818 - as concurrent.futures and asyncio name it
    """The work was cancelled; the running processes have been ended."""


@dataclass(frozen=True)
class Limits:
    """The limits of one command; ``memory_bytes`` and ``file_bytes`` are those of each process and
    file. Of more than ``output_bytes`` of output, the end is kept."""

    seconds: float = 120.0
    memory_bytes: int = 8 * GIB
    file_bytes: int = sandbox.Limits().file_bytes
    output_bytes: int = 64 << 20


@dataclass(frozen=True)
class CompletedProcess:
    """How a process ended. ``failure``: the limit or signal that ended it, or empty.
    ``interrupted``: it was ended by a signal that neither our limits nor the program itself
    explain."""

    returncode: int
    output: str
    failure: str = ""
    interrupted: bool = False

    @property
    def ok(self) -> bool:
        return self.returncode == 0 and not self.failure


class OutputTail:
    """The last ``limit`` bytes of what a process writes, also while it runs."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()
        self._lock = threading.Lock()

    @property
    def data(self) -> bytes:
        with self._lock:
            return bytes(self._data)

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")

    @contextmanager
    def collecting(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        """Collect the output of a process until all that hold its end of the pipe have ended."""
        thread = threading.Thread(target=self._read, args=(process.stdout,), name="output")
        thread.start()
        try:
            yield
        finally:
            thread.join()

    def _read(self, pipe: BinaryIO) -> None:
        with pipe:
            while part := os.read(pipe.fileno(), 1 << 16):
                with self._lock:
                    self._data += part
                    del self._data[: -self._limit]


class Cancellation:
    """Ends every process that runs under it when ``cancel`` is called, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[int] = set()
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            for group in self._running:
                _kill_group(group)

    @contextmanager
    def kill_on_cancel(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        """End the process and its group when ``cancel`` is called or the block raises."""
        with self._lock:
            self._running.add(process.pid)
            if self._cancelled:
                _kill_group(process.pid)
        try:
            yield
        except BaseException:
            if process.returncode is None:
                _kill_group(process.pid)
            process.wait()
            raise
        finally:
            with self._lock:
                self._running.discard(process.pid)


def run(
    command: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    limits: Limits,
    cancellation: Cancellation | None = None,
    policy: sandbox.Sandbox = sandbox.Sandbox(),
    output: OutputTail | None = None,
) -> CompletedProcess:
    """Run a command in a new process group, in the sandbox ``policy``, and end what it leaves
    running in the group. Its standard output and error are collected in ``output``, which another
    thread may read meanwhile.

    Raises ``Cancelled``; a process that exceeds its limits, or is ended by a signal, has a
    ``failure``.
    """
    tail = output or OutputTail(limits.output_bytes)
    cancellation = cancellation or Cancellation()
    if cancellation.cancelled:
        raise Cancelled
    # Limits that hold even if no process is left to enforce them.
    cpu_seconds = math.ceil(limits.seconds * (os.cpu_count() or 1))
    process_limits = sandbox.Limits(
        memory_bytes=limits.memory_bytes, file_bytes=limits.file_bytes, cpu_seconds=cpu_seconds
    )
    process = sandbox.start(
        command,
        replace(policy, processes=True, limits=process_limits),
        cwd=cwd,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        process_group=0,
    )
    failure = ""
    with tail.collecting(process), cancellation.kill_on_cancel(process):
        try:
            process.wait(limits.seconds)
        except subprocess.TimeoutExpired:
            failure = f"stopped after {limits.seconds:g} s"
        _kill_group(process.pid)
        process.wait()
    if cancellation.cancelled:
        raise Cancelled
    interrupted = not failure and _was_interrupted(process.returncode, tail.data)
    if process.returncode < 0 and not failure:
        failure = f"killed by {signal_name(process.returncode)}"
    return CompletedProcess(process.returncode, tail.text, failure, interrupted)


def _was_interrupted(returncode: int, output: bytes) -> bool:
    """Whether the program was ended from outside.

    SIGBUS: a linker writes through a mapping and the disk is full. SIGABRT without output: zig
    aborts this way when the compiler or linker that it started was killed; a crash of zig
    prints more.
    """
    if returncode == -signal.SIGABRT:
        return _CRASH_OUTPUT.search(output) is None
    return was_killed_externally(returncode) or returncode == -signal.SIGBUS


def was_killed_externally(returncode: int) -> bool:
    """Whether the status is that of a process ended by a signal from outside."""
    return -returncode in _EXTERNAL_SIGNALS


def signal_name(returncode: int) -> str:
    """Return the name of the signal behind a negative status."""
    try:
        return signal.Signals(-returncode).name
    except ValueError:  # a real-time signal
        return f"signal {-returncode}"


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
