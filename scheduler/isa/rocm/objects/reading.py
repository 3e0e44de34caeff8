"""A code object that nobody has checked, read in a process of its own.

LLVM and pyelftools read what may be anything: the process has the file to read, nothing to write,
no network, and limits of time and memory (``scheduler/fence``); it answers with one line of JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scheduler.build.process import Cancellation, Cancelled, signal_name
from scheduler.fence.python import start_python
from scheduler.isa.rocm.objects import disassembler
from scheduler.isa.rocm.objects.model import CodeObject, Limits
from scheduler.outcome import MachineError, UserError

_CHILD = "scheduler.isa.rocm.objects.child"
_OVER_TIME = frozenset({signal.SIGXCPU})
_ENDED = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})


def read(
    file: Path,
    processor: str,
    kernels: Sequence[str] = (),
    limits: Limits = Limits(),
    cancellation: Cancellation | None = None,
) -> CodeObject:
    """The code object for a processor (``gfx942``) in a file: an ELF file (.hsaco, .co, .o), or a
    bundle with one, as a listing of the kernels that are named, or of all.

    Raises ``UserError`` in one line for what is none, or for another processor; ``MachineError``
    where the process was ended from outside; ``Cancelled``.
    """
    disassembler.require()
    if file.stat().st_size > limits.file_bytes:
        raise UserError(f"{file.name}: larger than the {limits.file_bytes >> 20} MiB that are read")
    request = {"processor": processor, "kernels": list(kernels), "limits": asdict(limits)}
    answer = _ask(request, file, limits, cancellation or Cancellation())
    if "error" in answer:
        raise UserError(f"{file.name}: {answer['error']}")
    found = answer["ok"]
    if found["target"] != processor:
        raise UserError(f"{file.name}: made for {found['target']}, not for {processor}")
    return CodeObject(found["target"], found["listing"], tuple(found["kernels"]), found["left_out"])


def _ask(
    request: dict[str, Any], file: Path, limits: Limits, cancellation: Cancellation
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="kiln-object-") as folder:
        process = start_python(
            _CHILD,
            (json.dumps(request), str(file.absolute())),
            Path(folder),
            os.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        with cancellation.ends(process):
            try:
                output, _ = process.communicate(timeout=limits.seconds)
            except subprocess.TimeoutExpired:
                raise UserError(_over_time(file, limits)) from None
    if cancellation.cancelled:
        raise Cancelled
    return _answer(file, limits, process.returncode, output)


def _answer(file: Path, limits: Limits, status: int, output: bytes) -> dict[str, Any]:
    if -status in _OVER_TIME:
        raise UserError(_over_time(file, limits))
    if -status in _ENDED:
        raise MachineError(f"{file.name}: its reader was ended by {signal_name(status)}: try again")
    if status != 0:
        ended = f"ended by {signal_name(status)}" if status < 0 else f"ended with {status}"
        raise UserError(f"{file.name}: cannot be read: its reader {ended}")
    answer: dict[str, Any] = json.loads(output)
    return answer


def _over_time(file: Path, limits: Limits) -> str:
    return f"{file.name}: takes longer than the {limits.seconds:g} s that a code object may"
