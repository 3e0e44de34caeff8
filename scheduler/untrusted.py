"""A model's file that nobody has checked, read and tried out in processes of their own.

Each has the file to read, nothing to write, no network, and limits of time and memory
(``scheduler/fence``); it answers with one line of JSON. A file that takes it over its limits, or
brings it down, is turned down in one line, and nothing else comes of it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scheduler.build.process import Cancellation, Cancelled, signal_name
from scheduler.fence.python import start_python
from scheduler.outcome import MachineError, UserError

_CHILD = "scheduler.untrusted_child"
_OVER_TIME = frozenset({signal.SIGXCPU})
_ENDED = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})


@dataclass(frozen=True)
class Limits:
    """What a file may take of one process."""

    seconds: float = 60.0
    memory_bytes: int = 4 << 30


def read_graph(file: Path, limits: Limits = Limits()) -> Mapping[str, Any]:
    """The graph in a file as ``graph_to_json`` gives it, and ``writers``, where it writes
    inputs: by each of these the nodes that write it.

    Raises ``UserError`` naming the part that is malformed, or the limit that reading it took up;
    ``MachineError`` where the process was ended from outside.
    """
    content: Mapping[str, Any] = _ask("read", file, (), limits, None)
    return content


def try_out(
    file: Path, targets: Sequence[str], limits: Limits, cancellation: Cancellation | None = None
) -> None:
    """Read, lower and schedule the graph in a file and render its default kernels for targets
    whose sources are shared: all that preparing it does. Nothing of it is kept.

    Raises as ``read_graph``, and ``Cancelled``.
    """
    _ask("try", file, targets, limits, cancellation)


def _ask(
    what: str,
    file: Path,
    more: Sequence[str],
    limits: Limits,
    cancellation: Cancellation | None,
) -> Any:
    cancellation = cancellation or Cancellation()
    given = (what, str(limits.memory_bytes), str(limits.seconds), str(file.absolute()))
    with tempfile.TemporaryDirectory(prefix="kiln-read-") as folder:
        process = start_python(
            _CHILD,
            (*given, *more),
            Path(folder),
            os.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        with cancellation.ends(process):
            try:
                output, _ = process.communicate(timeout=limits.seconds)
            except subprocess.TimeoutExpired:
                raise UserError(_over_time(file, limits)) from None
    if cancellation.cancelled:
        raise Cancelled
    return _answer(file, limits, process.returncode, output)


def _answer(file: Path, limits: Limits, status: int, output: bytes) -> Any:
    if -status in _OVER_TIME:
        raise UserError(_over_time(file, limits))
    if -status in _ENDED:
        raise MachineError(f"{file.name}: its reader was ended by {signal_name(status)}: try again")
    if status != 0:
        ended = f"ended by {signal_name(status)}" if status < 0 else f"ended with {status}"
        raise UserError(f"{file.name}: cannot be read: its reader {ended}")
    answer = json.loads(output)
    if "error" in answer:
        raise UserError(answer["error"])
    return answer["ok"]


def _over_time(file: Path, limits: Limits) -> str:
    return f"{file.name}: takes longer than the {limits.seconds:g} s that a model may"
