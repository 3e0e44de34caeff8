"""Parent side of the processes that check, time and model kernels.

Requests have time limits; failures of a process become rejections.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Self

from scheduler.benchmark.candidate import BuiltCandidate
from scheduler.benchmark.graph_run import link_or_copy
from scheduler.benchmark.sandbox_paths import (
    HOME_FOLDER,
    INPUT_FOLDER,
    kernel_memory_limit,
    kernel_sandbox,
)
from scheduler.errors import Rejected, Stage
from scheduler.sandbox.process import signal_name, was_killed_externally
from scheduler.sandbox.rpc import (
    AnsweredError,
    Child,
    ChildError,
    ChildExitedError,
    ChildTimeoutError,
    InvalidAnswerError,
)

_CASE_FILES = ("case.json", "arrays.npz")
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


class WorkerProcess:
    """A process that answers requests with one program; start another when it dies.

    It has its own folder, into which files are staged. Use as a context manager: on exit the
    process is killed and the folder removed.
    """

    stages: ClassVar[Mapping[str, Stage]] = {}
    """The stage of the rejection when a request fails with a device error, by request name; the
    default is ``Stage.RUN``."""

    def __init__(
        self, program: str, device: str, memory_bytes: int, arguments: Sequence[str] = ()
    ) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 -- lives as long as the process
        self._folder = Path(tempfile.mkdtemp(prefix="kiln-measure-"))
        self._numbers = count()
        for name in (INPUT_FOLDER, HOME_FOLDER):
            (self._folder / name).mkdir()
        sandbox = kernel_sandbox(self._folder, device, memory_bytes)
        self._child = Child(program, sandbox, self._folder / HOME_FOLDER, arguments, self._log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def request(self, timeout_s: float, **request: Any) -> dict[str, Any]:
        """Send a request, named by ``op``, and return the answer.

        Raises ``WorkerLostError`` if the process can no longer be used.
        """
        try:
            answer = self._child.request(request, seconds=timeout_s, max_bytes=_ANSWER_MAX_BYTES)
        except ChildTimeoutError:
            reason = f"no answer to {request['op']!r} within {timeout_s:g} s"
            raise self._end(Stage.TIMEOUT, reason) from None
        except (AnsweredError, ChildError) as error:
            raise self._crash_error(error) from None
        if not isinstance(answer, dict):
            raise self._crash_error(InvalidAnswerError())
        if "device_error" in answer:
            stage = self.stages.get(request["op"], Stage.RUN)
            raise self._end(stage, str(answer["device_error"]))
        return answer

    def kill(self) -> None:
        """Kill the process and everything it started, and remove its folder."""
        self._child.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def interrupt(self) -> None:
        """Kill the process from a thread other than the one that waits for its answer."""
        self._child.interrupt()

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

    def _crash_error(self, error: Exception) -> WorkerLostError:
        """Return the error for a process that gave no valid answer."""
        detail = ""
        if isinstance(error, AnsweredError):
            detail = f"{error.kind}: {error}"
            if error.kind == "UserError":
                return self._end(Stage.CRASH, f"the worker process failed: {error}")
            error = self._child.exit_error()
        if not isinstance(error, ChildExitedError):
            return self._end(Stage.CRASH, "the worker process sent an invalid answer")
        reason = f"the worker process exited with status {error.status}"
        if error.status < 0:
            reason = f"killed by {signal_name(error.status)}"
        crash = self._end(Stage.CRASH, reason, detail)
        if "Memory access fault by GPU" in crash.rejected.detail:
            return WorkerLostError(replace(crash.rejected, reason="GPU memory fault"))
        crash.interrupted = was_killed_externally(error.status)
        return crash

    def _end(self, stage: Stage, reason: str, detail: str = "") -> WorkerLostError:
        """Kill the process and return the error, with the end of its standard error."""
        self.kill()
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - _LOG_TAIL_BYTES))
        log = self._log.read().decode(errors="replace")
        return WorkerLostError(Rejected(stage, reason, log or detail))


class BenchmarkWorker(WorkerProcess):
    """One worker process on one device; it receives cases and libraries."""

    stages: ClassVar[Mapping[str, Stage]] = {"open": Stage.LOAD, "load": Stage.LOAD}

    def __init__(self, device: str, memory_bytes: int | None = None) -> None:
        self.device = device
        limit = memory_bytes or kernel_memory_limit()
        super().__init__("scheduler.benchmark.child:make_handler", device, limit)

    def open(self, case: Path, copies: int = 1, timeout_s: float = 120.0) -> None:
        """Open the device and the case in the folder ``case``."""
        with self.stage_files([case / name for name in _CASE_FILES]) as folder:
            self.request(timeout_s, op="open", device=self.device, case=str(folder), copies=copies)

    def load(self, candidate: BuiltCandidate, timeout_s: float) -> dict[str, Any]:
        """Load a candidate's library; the answer holds its ``workspace_bytes``."""
        library = Path(candidate.library)
        with self.stage_files([library]) as folder:
            staged = replace(candidate, library=str(folder / library.name))
            return self.request(timeout_s, op="load", candidate=staged.to_json())
