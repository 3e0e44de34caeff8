"""A process that answers requests, one JSON object a line, behind a fence of its own: the parent's
end, with time limits, and its faults as rejections."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import IO, Any, ClassVar, Self

from scheduler.benchmark.graph_run import link_or_copy
from scheduler.benchmark.sandbox_paths import HOME_FOLDER, INPUT_FOLDER
from scheduler.errors import Rejected, Stage
from scheduler.sandbox.process import signal_name, was_killed_externally
from scheduler.sandbox.python import start_python

_LOG_TAIL_BYTES = 4000
_ANSWER_MAX_BYTES = 1 << 24


class WorkerLostError(Exception):
    """The process is gone (it crashed, hung, or its device failed); holds what to record.

    ``interrupted``: a signal from outside ended it, which says nothing of the candidate.
    """

    def __init__(self, rejected: Rejected, *, interrupted: bool = False) -> None:
        super().__init__(rejected.reason)
        self.rejected = rejected
        self.interrupted = interrupted


class ChildProcess:
    """One process of the Python ``module``; start another when it dies.

    It has a folder of its own, into which it is handed files. Its arguments are that folder and
    what ``arguments`` makes of it. Use as a context manager: neither outlives it.
    """

    stages: ClassVar[Mapping[str, Stage]] = {}
    """At which stage a candidate is rejected whose request, by its name, ends in an error of the
    device; the others' is ``Stage.RUN``."""

    def __init__(self, module: str, arguments: Sequence[str]) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 -- lives as long as the process
        self._folder = Path(tempfile.mkdtemp(prefix="kiln-measure-"))
        self._numbers = count()
        for name in (INPUT_FOLDER, HOME_FOLDER):
            (self._folder / name).mkdir()
        self._process = start_python(
            module,
            [str(self._folder), *arguments],
            self._folder / HOME_FOLDER,
            os.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        self._pending = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def request(self, timeout_s: float, **request: Any) -> dict[str, Any]:
        """Ask and wait for the answer.

        Raises ``WorkerLostError`` when the process is of no more use.
        """
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()
        except BrokenPipeError:
            raise self._crashed() from None
        answer = self._parsed(self._read_line(timeout_s, request["op"]))
        if "device_error" in answer:
            self.kill()
            stage = self.stages.get(request["op"], Stage.RUN)
            raise WorkerLostError(Rejected(stage, str(answer["device_error"]), self.log_tail()))
        result: dict[str, Any] = answer["ok"]
        return result

    def kill(self) -> None:
        """End the process and everything it started."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None and not pipe.closed:
                _close(pipe)

    def interrupt(self) -> None:
        """End the process from another thread than the one that waits for its answer."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def log_tail(self) -> str:
        """The end of what the process wrote to standard error."""
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - _LOG_TAIL_BYTES))
        return self._log.read().decode(errors="replace")

    def _read_line(self, timeout_s: float, op: str) -> bytes:
        stdout = self._process.stdout
        assert stdout is not None
        deadline = time.monotonic() + timeout_s
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    self.kill()
                    reason = f"no answer to {op!r} within {timeout_s:g} s"
                    raise WorkerLostError(Rejected(Stage.TIMEOUT, reason, self.log_tail()))
                chunk = os.read(stdout.fileno(), 65536)
                if not chunk:
                    raise self._crashed()
                self._pending += chunk
                if len(self._pending) > _ANSWER_MAX_BYTES:
                    raise WorkerLostError(self._unreadable())
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    @contextlib.contextmanager
    def stage_files(self, files: Sequence[Path]) -> Iterator[Path]:
        """A folder that the process may read, with these files in it until it has answered. One
        that is not there is found missing by the process."""
        folder = self._folder / INPUT_FOLDER / str(next(self._numbers))
        folder.mkdir()
        try:
            for file in files:
                with contextlib.suppress(FileNotFoundError):
                    link_or_copy(file, folder / file.name)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _parsed(self, line: bytes) -> dict[str, Any]:
        """The answer; a kernel may have written anything there."""
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if isinstance(answer, dict) and ("device_error" in answer or "ok" in answer):
            return answer
        raise WorkerLostError(self._unreadable())

    def _unreadable(self) -> Rejected:
        self.kill()
        return Rejected(Stage.CRASH, "the worker process wrote what is no answer", self.log_tail())

    def _crashed(self) -> WorkerLostError:
        code = self._process.wait()
        log = self.log_tail()
        if "Memory access fault by GPU" in log:
            return WorkerLostError(Rejected(Stage.CRASH, "GPU memory fault", log))
        reason = f"the worker process ended with {code}"
        if code < 0:
            reason = f"killed by {signal_name(code)}"
        interrupted = was_killed_externally(code)
        return WorkerLostError(Rejected(Stage.CRASH, reason, log), interrupted=interrupted)


def _close(pipe: IO[bytes]) -> None:
    with contextlib.suppress(BrokenPipeError):  # unsent bytes for a process that is gone
        pipe.close()
