"""Run one of our programs on untrusted input: a sandboxed child process answers with one line of
JSON. If it exceeds its limits or crashes, the error is reported in one line and has no other
effect."""

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
    """A module to run, and the words of its error messages: ``who`` it is (its reader), what it
    ``does`` to its input (be read), and ``whose`` time limit it has (a model). A ``quiet`` one uses
    libraries that write arbitrary text to standard error."""

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
    """Return the child's answer. ``name`` is the user's name for the input; the child works in
    ``folder``, which the caller removes.

    Raises ``UserError`` if the child takes longer than ``seconds`` or fails, ``MachineError`` if it
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
        raise MachineError(f"{name}: {child.who} was killed by {signal_name(status)}: try again")
    if status != 0:
        ended = f"exited with status {status}"
        if status < 0:
            ended = f"was killed by {signal_name(status)}"
        raise UserError(f"{name}: cannot {child.does}: {child.who} {ended}")
    answer = json.loads(output)
    if "error" in answer:
        raise UserError(answer["error"])
    return answer["ok"]


def _timeout_message(child: ChildProgram, name: str, seconds: float) -> str:
    return f"{name}: exceeds the time limit of {seconds:g} s for {child.whose}"
