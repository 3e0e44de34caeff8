"""A kernel that nobody has checked, modelled in a process of its own.

Its listing and its launch may say anything: the process has both to read, nothing to write, no
network, and limits of time and memory (``scheduler/fence``); it answers with one line of JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scheduler.build.process import Cancellation, Cancelled, signal_name
from scheduler.cycles.kernel_file import KernelFile
from scheduler.cycles.record import from_json
from scheduler.cycles.report import Report
from scheduler.fence.python import start_python
from scheduler.outcome import MachineError, UserError
from scheduler.targets import Board

_CHILD = "scheduler.cycles.untrusted_child"
_OVER_TIME = frozenset({signal.SIGXCPU})
_ENDED = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})


@dataclass(frozen=True)
class Limits:
    """What modelling one launch may take of its process."""

    seconds: float = 300.0
    memory_bytes: int = 4 << 30


def model_untrusted(
    kernels: KernelFile,
    board: Board,
    launch: str,
    limits: Limits = Limits(),
    cancellation: Cancellation | None = None,
) -> Report:
    """One launch (JSON) of a kernel of the file on a board, as ``model_file`` models it.

    Raises ``UserError`` in one line, also where it takes more than the limits; ``MachineError``
    where the process was ended from outside; ``Cancelled``.
    """
    cancellation = cancellation or Cancellation()
    with tempfile.TemporaryDirectory(prefix="kiln-model-") as place:
        folder = Path(place)
        listing, text = folder / "kernel.s", folder / "launch.json"
        listing.write_text(kernels.listing, "utf-8")
        text.write_text(launch, "utf-8")
        request = {
            "name": kernels.name,
            "kernels": list(kernels.kernels),
            "target": board.target,
            "board": board.name,
            "limits": asdict(limits),
        }
        process = start_python(
            _CHILD,
            (json.dumps(request), str(listing), str(text)),
            folder,
            os.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        with cancellation.ends(process):
            try:
                output, _ = process.communicate(timeout=limits.seconds)
            except subprocess.TimeoutExpired:
                raise UserError(_over_time(kernels, limits)) from None
    if cancellation.cancelled:
        raise Cancelled
    return _answer(kernels, limits, process.returncode, output)


def _answer(kernels: KernelFile, limits: Limits, status: int, output: bytes) -> Report:
    if -status in _OVER_TIME:
        raise UserError(_over_time(kernels, limits))
    if -status in _ENDED:
        raise MachineError(f"{kernels.name}: the model was ended by {signal_name(status)}")
    if status != 0:
        ended = f"ended by {signal_name(status)}" if status < 0 else f"ended with {status}"
        raise UserError(f"{kernels.name}: cannot be modelled: the model {ended}")
    answer: dict[str, Any] = json.loads(output)
    if "error" in answer:
        raise UserError(answer["error"])
    return from_json(answer["ok"])


def _over_time(kernels: KernelFile, limits: Limits) -> str:
    return f"{kernels.name}: takes longer than the {limits.seconds:g} s that a kernel may"
