"""Run our own programs on untrusted input, in sandboxed child processes; ``child.py`` is the child.

A program is a function by its dotted name (``package.module:function``). The child calls it, which
imports what it needs, then enters the sandbox, and passes requests to the handler that it returned.
Requests and answers are lines of JSON. An answer is ``{"ok": VALUE}``, or ``{"error": CLASS,
"message": TEXT}`` for an exception. The child ends at the end of its input, or after any exception
but ``UserError``. It may send anything: an answer is bounded, and untrusted like the input.
"""

from __future__ import annotations

import json
import math
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Self, TypeAlias

from scheduler.errors import MachineError, UserError
from scheduler.limits import MAX_JSON_BYTES
from scheduler.sandbox.model import MIB, Limits, Sandbox
from scheduler.sandbox.process import Cancellation, Cancelled, signal_name, was_killed_externally

Handler: TypeAlias = Callable[[dict[str, Any]], Any]
"""Returns the JSON value that answers a request, or an ``Answer``. A ``UserError`` is answered, and
so are other exceptions, after which the process ends."""

PACKAGE_FOLDER = Path(__file__).resolve().parents[1]  # the package scheduler
OUTPUT = "output"  # the file that a child writes to its folder
_CHILD = "scheduler.sandbox.child"
# Variables for device runtimes, the interpreter and the loader; never keys, addresses or folders.
_ENV_PREFIXES = (
    *("AMD_", "CUDA_", "GPU_", "HIP_", "HSA_", "LC_", "LD_LIBRARY_", "NVIDIA_"),
    *("ROCM_", "ROCR_"),
)
_ENV_NAMES = frozenset({"LANG", "PATH", "PYTHONHASHSEED", "PYTHONPATH", "TZ"})
# A thread that exists before the sandbox is entered stays outside it.
_SINGLE_THREAD_ENV = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)
_CHUNK_BYTES = 1 << 16
_EXIT_SECONDS = 10.0  # for a child that has closed its output, where a request has no time limit


@dataclass(frozen=True)
class Answer:
    """An answer that is followed by bytes, whose number the parent knows."""

    value: Any
    payload: Sequence[memoryview]


class ChildError(Exception):
    """The child process cannot be used any more."""


class ChildTimeoutError(ChildError):
    """The child did not answer, or did not end, in time."""

    def __init__(self) -> None:
        super().__init__("did not answer in time")


class InvalidAnswerError(ChildError):
    """The child sent something else than an answer, or too much; the message says what it did."""


class ChildExitedError(ChildError):
    """The child ended without an answer."""

    def __init__(self, status: int) -> None:
        killed_message = f"was killed by {signal_name(status)}"
        super().__init__(killed_message if status < 0 else f"exited with status {status}")
        self.status = status


class AnsweredError(Exception):
    """The handler raised an exception of the class ``kind``."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Child:
    """A child process that runs one program in a folder that is also its home.

    As a context manager: on exit the process is killed.
    """

    def __init__(
        self,
        program: str,
        sandbox: Sandbox,
        folder: Path,
        arguments: Sequence[str] = (),
        stderr: int | IO[bytes] | None = None,
    ) -> None:
        paths = (str(PACKAGE_FOLDER.parent), os.environ.get("PYTHONPATH", ""))
        environment = {
            name: value
            for name, value in os.environ.items()
            if name.startswith(_ENV_PREFIXES) or name in _ENV_NAMES
        }
        environment |= {
            **_SINGLE_THREAD_ENV,
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        }
        policy = json.dumps(asdict(sandbox), default=str)
        self.process = subprocess.Popen(
            [sys.executable, "-m", _CHILD, program, policy, *arguments],
            cwd=folder,
            env=environment,
            process_group=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self._requests, self._answers = self.process.stdin, self.process.stdout
        os.set_blocking(self._requests.fileno(), False)
        self._received = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def request(self, request: Any, *, seconds: float | None, max_bytes: int) -> Any:
        """Send a request and return the value of the answer.

        Raises ``AnsweredError``, or ``ChildError``.
        """
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        with suppress(BrokenPipeError):  # it has ended, possibly after an error in its preparation
            self._write(json.dumps(request).encode() + b"\n", deadline)
        try:
            answer = json.loads(self._read_line(deadline, max_bytes))
        except (ValueError, RecursionError):
            answer = None
        if isinstance(answer, dict) and "ok" in answer:
            return answer["ok"]
        if isinstance(answer, dict) and "error" in answer:
            raise AnsweredError(str(answer["error"]), str(answer.get("message", "")))
        raise InvalidAnswerError("sent an invalid answer")

    def read_into(self, target: memoryview) -> None:
        """Fill ``target`` with the bytes that follow an answer. Raises ``ChildExitedError``."""
        filled = min(len(target), len(self._received))
        target[:filled] = self._received[:filled]
        del self._received[:filled]
        while filled < len(target):
            count = os.readv(self._answers.fileno(), [target[filled:]])
            if not count:
                raise self.exit_error()
            filled += count

    def kill(self) -> None:
        """Kill the process and everything that it started."""
        self.interrupt()
        self.process.wait()
        for pipe in (self._requests, self._answers):
            with suppress(BrokenPipeError):  # unsent bytes for a process that is gone
                pipe.close()

    def interrupt(self) -> None:
        """Kill the process from a thread other than the one that waits for its answer."""
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def exit_error(self, seconds: float | None = None) -> ChildError:
        """Wait for the end of a process that answers no more, and return how it ended."""
        try:
            return ChildExitedError(
                self.process.wait(_EXIT_SECONDS if seconds is None else seconds)
            )
        except subprocess.TimeoutExpired:
            return ChildTimeoutError()

    def _write(self, data: bytes, deadline: float) -> None:
        """Write to the child, which may not read yet: what it loads first can take long."""
        unsent = memoryview(data)
        with selectors.DefaultSelector() as selector:
            selector.register(self._requests, selectors.EVENT_WRITE)
            while unsent:
                if not selector.select(_remaining(deadline)):
                    raise ChildTimeoutError
                unsent = unsent[os.write(self._requests.fileno(), unsent) :]

    def _read_line(self, deadline: float, max_bytes: int) -> bytes:
        searched = 0
        with selectors.DefaultSelector() as selector:
            selector.register(self._answers, selectors.EVENT_READ)
            while (end := self._received.find(b"\n", searched)) < 0:
                searched = len(self._received)
                if searched > max_bytes:
                    raise InvalidAnswerError(f"sent an answer of more than {max_bytes >> 20} MiB")
                if not selector.select(_remaining(deadline)):
                    raise ChildTimeoutError
                chunk = os.read(self._answers.fileno(), _CHUNK_BYTES)
                if not chunk:
                    raise self.exit_error(_remaining(deadline))
                self._received += chunk
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line


def _remaining(deadline: float) -> float | None:
    """Return the seconds until a time of the monotonic clock; None for an infinite one."""
    return None if deadline == math.inf else max(0.0, deadline - time.monotonic())


@dataclass(frozen=True)
class ChildProgram:
    """A program that answers one request, and the words of its error messages: ``who`` it is (its
    reader), what it ``does`` to its input (be read), ``whose`` time and memory it uses (a model),
    and what an exception of the class ``{kind}`` means. A ``quiet`` one uses libraries that write
    arbitrary text to standard error."""

    program: str
    who: str
    does: str
    whose: str
    names_memory: bool = False  # whether ``whose`` is also in the message about memory
    bug: str = "internal error ({kind}): please report it"
    quiet: bool = False


def call_child(
    child: ChildProgram,
    request: Any,
    *,
    name: str,
    seconds: float,
    memory_bytes: int,
    files: Sequence[Path] = (),
    writable: bool = False,
    output: Path | None = None,
    file_bytes: int = MIB,
    cancellation: Cancellation | None = None,
) -> Any:
    """Return the child's answer to a request. ``name`` is the user's name for the input.

    The child reads ``files``. If ``writable``, it may write files of at most ``file_bytes`` to its
    working folder, which is temporary; with ``output`` as well, and the file ``OUTPUT`` is moved
    there.

    Raises ``UserError`` if the child exceeds a limit or fails, ``MachineError`` if it was ended
    from outside, ``Cancelled``.
    """
    cancellation = cancellation or Cancellation()
    limits = Limits(memory_bytes, file_bytes=file_bytes, cpu_seconds=math.ceil(seconds) + 1)
    with tempfile.TemporaryDirectory(prefix="kiln-child-") as folder_name:
        folder = Path(folder_name)
        written = (folder,) if writable or output is not None else ()
        sandbox = Sandbox(read=tuple(files), write=written, limits=limits)
        stderr = subprocess.DEVNULL if child.quiet else None
        try:
            with (
                Child(child.program, sandbox, folder, stderr=stderr) as process,
                cancellation.kill_on_cancel(process.process),
            ):
                answer = process.request(request, seconds=seconds, max_bytes=MAX_JSON_BYTES)
        except (AnsweredError, ChildError) as error:
            if cancellation.cancelled:
                raise Cancelled from None
            raise _user_error(child, error, name, seconds, memory_bytes) from None
        if cancellation.cancelled:
            raise Cancelled
        if output is not None:
            if (folder / OUTPUT).is_symlink():
                raise UserError(f"{name}: cannot {child.does}: {child.who} wrote a link")
            shutil.move(folder / OUTPUT, output)
    return answer


def _user_error(
    child: ChildProgram, error: Exception, name: str, seconds: float, memory_bytes: int
) -> UserError:
    """Return the one-line error for a child that gave no answer."""
    status = error.status if isinstance(error, ChildExitedError) else 0
    if isinstance(error, ChildTimeoutError) or status == -signal.SIGXCPU:
        return UserError(f"{name}: exceeds the time limit of {seconds:g} s for {child.whose}")
    if was_killed_externally(status):
        return MachineError(f"{name}: {child.who} was killed by {signal_name(status)}: try again")
    if not isinstance(error, AnsweredError):
        return UserError(f"{name}: cannot {child.does}: {child.who} {error}")
    if error.kind == "UserError":
        return UserError(str(error))
    if error.kind == "MemoryError":
        whose = f" for {child.whose}" if child.names_memory else ""
        gib = memory_bytes / (1 << 30)
        return UserError(f"{name}: exceeds the memory limit of {gib:g} GiB{whose}")
    if error.kind == "RecursionError":
        return UserError(f"{name}: nested too deeply")
    return UserError(f"{name}: {child.bug.format(kind=error.kind)}")


def parse_sandbox(text: str) -> Sandbox:
    """Return the sandbox that the parent passes to the child."""
    fields = json.loads(text)
    fields["limits"] = Limits(**fields["limits"])
    for name in ("read", "write", "execute", "devices"):
        fields[name] = tuple(map(Path, fields[name]))
    return Sandbox(**fields)
