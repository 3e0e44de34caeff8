"""A program of ours that has to do with what nobody has checked: a process of its own, behind the
fence, answers with one line of JSON. What takes it over its limits, or brings it down, is told in
one line, and nothing else comes of it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scheduler.errors import MachineError, UserError
from scheduler.sandbox.process import Cancellation, Cancelled, signal_name
from scheduler.sandbox.python import start_python

_OVER_TIME = frozenset({signal.SIGXCPU})
_KILL_SIGNALS = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})


@dataclass(frozen=True)
class ChildProgram:
    """A module that is run, and the words for what becomes of it: ``who`` it is (its reader), what
    it ``does`` to what it was given (be read), and what its time is granted to (a model). A
    ``quiet`` one has libraries that write to standard error whatever they like."""

    module: str
    who: str
    does: str
    whose: str
    quiet: bool = False


def call_child(
    child: ChildProgram,
    arguments: Sequence[str],
    *,
    name: str,
    folder: Path,
    seconds: float,
    cancellation: Cancellation | None = None,
) -> Any:
    """The child's answer. ``name`` is what the user calls what it is about; it works in
    ``folder``, which is the caller's to remove.

    Raises ``UserError`` where it takes longer than ``seconds`` or fails, ``MachineError`` where it
    was ended from outside, ``Cancelled``.
    """
    cancellation = cancellation or Cancellation()
    process = start_python(
        *(child.module, tuple(arguments), folder, os.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if child.quiet else None,
    )
    with cancellation.kill_on_cancel(process):
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise UserError(_timeout_message(child, name, seconds)) from None
    if cancellation.cancelled:
        raise Cancelled
    return _parse_answer(child, name, seconds, process.returncode, output)


def _parse_answer(
    child: ChildProgram, name: str, seconds: float, status: int, output: bytes
) -> Any:
    if -status in _OVER_TIME:
        raise UserError(_timeout_message(child, name, seconds))
    if -status in _KILL_SIGNALS:
        raise MachineError(f"{name}: {child.who} was ended by {signal_name(status)}: try again")
    if status != 0:
        ended = f"ended by {signal_name(status)}" if status < 0 else f"ended with {status}"
        raise UserError(f"{name}: cannot {child.does}: {child.who} {ended}")
    answer = json.loads(output)
    if "error" in answer:
        raise UserError(answer["error"])
    return answer["ok"]


def _timeout_message(child: ChildProgram, name: str, seconds: float) -> str:
    return f"{name}: takes longer than the {seconds:g} s that {child.whose} may"
