"""The parent's end of a worker process: requests with time limits, faults as rejections."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Any, Self

from scheduler.build.process import ended_from_outside, signal_name
from scheduler.outcome import Rejected, Stage

_LOG_TAIL_BYTES = 4000


class WorkerLostError(Exception):
    """The process is gone (it crashed, hung, or its device failed); holds what to record.

    ``interrupted``: a signal from outside ended it, which says nothing of the candidate.
    """

    def __init__(self, rejected: Rejected, *, interrupted: bool = False) -> None:
        super().__init__(rejected.reason)
        self.rejected = rejected
        self.interrupted = interrupted


class BenchmarkWorker:
    """One worker process on one device; start another when it dies.

    Use as a context manager: the process never outlives it.
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 -- lives as long as the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", "scheduler.benchmark.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            process_group=0,
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
        answer: dict[str, Any] = json.loads(self._read_line(timeout_s, request["op"]))
        if "device_error" in answer:
            self.kill()
            stage = {"open": Stage.LOAD, "load": Stage.LOAD}.get(request["op"], Stage.RUN)
            raise WorkerLostError(Rejected(stage, answer["device_error"], self.log_tail()))
        result: dict[str, Any] = answer["ok"]
        return result

    def open(self, case: Path, copies: int = 1, timeout_s: float = 120.0) -> None:
        """Open the device and the case that lies in ``case``."""
        self.request(timeout_s, op="open", device=self.device, case=str(case), copies=copies)

    def kill(self) -> None:
        """End the process and everything it started."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
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
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _crashed(self) -> WorkerLostError:
        code = self._process.wait()
        log = self.log_tail()
        if "Memory access fault by GPU" in log:
            return WorkerLostError(Rejected(Stage.CRASH, "GPU memory fault", log))
        reason = f"the worker process ended with {code}"
        if code < 0:
            reason = f"killed by {signal_name(code)}"
        interrupted = ended_from_outside(code)
        return WorkerLostError(Rejected(Stage.CRASH, reason, log), interrupted=interrupted)


def _close(pipe: IO[bytes]) -> None:
    with contextlib.suppress(BrokenPipeError):  # unsent bytes for a process that is gone
        pipe.close()
