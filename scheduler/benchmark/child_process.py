"""Parent side of a sandboxed process that answers requests, one JSON object per line.

Requests have time limits; failures of the process become rejections.
"""

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
    """The process is gone (it crashed, hung, or its device failed); ``rejected`` is the record.

    ``interrupted``: an external signal killed it, which is unrelated to the candidate.
    """

    def __init__(self, rejected: Rejected, *, interrupted: bool = False) -> None:
        super().__init__(rejected.reason)
        self.rejected = rejected
        self.interrupted = interrupted


class ChildProcess:
    """One process of the Python ``module``; start another when it dies.

    The process has its own folder, into which files are staged. Its arguments are that folder and
    ``arguments``. Use as a context manager: on exit the process is killed and the folder removed.
    """

    stages: ClassVar[Mapping[str, Stage]] = {}
    """The stage of the rejection when a request fails with a device error, by request name; the
    default is ``Stage.RUN``."""

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
        """Send a request and wait for the answer.

        Raises ``WorkerLostError`` if the process can no longer be used.
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
        """Kill the process and everything it started, and remove its folder."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None and not pipe.closed:
                _close(pipe)

    def interrupt(self) -> None:
        """Kill the process from a thread other than the one that waits for its answer."""
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
        """Put files into a folder that the process may read, for the duration of the context.

        A missing file is skipped: the process reports it.
        """
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
        """Parse and check the answer; a kernel may have written anything to the stream."""
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if isinstance(answer, dict) and ("device_error" in answer or "ok" in answer):
            return answer
        raise WorkerLostError(self._unreadable())

    def _unreadable(self) -> Rejected:
        self.kill()
        return Rejected(Stage.CRASH, "the worker process sent an invalid answer", self.log_tail())

    def _crashed(self) -> WorkerLostError:
        code = self._process.wait()
        log = self.log_tail()
        if "Memory access fault by GPU" in log:
            return WorkerLostError(Rejected(Stage.CRASH, "GPU memory fault", log))
        reason = f"the worker process exited with status {code}"
        if code < 0:
            reason = f"killed by {signal_name(code)}"
        interrupted = was_killed_externally(code)
        return WorkerLostError(Rejected(Stage.CRASH, reason, log), interrupted=interrupted)


def _close(pipe: IO[bytes]) -> None:
    with contextlib.suppress(BrokenPipeError):  # unsent bytes for a process that is gone
        pipe.close()
