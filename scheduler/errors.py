"""Failures that are not bugs: user errors, machine errors, and rejections, which are kept as data.

An exception reports a bug or a mistake that the user can fix. Every other failure of a candidate
(it is unsupported, does not compile, is wrong, hangs, crashes) is a ``Rejected`` that is recorded
and shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from scheduler.text import escape_log, one_line


class UserError(Exception):
    """A mistake of the caller: one line that says what is wrong, where, and how to fix it.

    The command line prints it to stderr and exits with 2; the web pages show it unchanged. The
    message may contain names from a file, with any character: ``one_line`` escapes and shortens it.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(one_line(message))


class MachineError(UserError):
    """A failure of the machine, not of the request: no space, no memory, a folder that cannot be
    written. The same request may succeed once that is fixed."""


class Stage(StrEnum):
    """The step at which a candidate was rejected."""

    RULE = "rule"
    RENDER = "render"
    COMPILE = "compile"
    MODEL = "model"  # a candidate that is modelled, not run
    LOAD = "load"
    CHECK = "check"
    RUN = "run"
    TIMEOUT = "timeout"
    CRASH = "crash"


@dataclass(frozen=True)
class Rejected:
    """A candidate's rejection: recorded and shown, never raised.

    ``reason`` is one line for a table; ``detail`` holds the log or the numbers behind it.
    """

    stage: Stage
    reason: str
    detail: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", one_line(self.reason))
        object.__setattr__(self, "detail", escape_log(self.detail))


@dataclass(frozen=True)
class Interrupted(Rejected):
    """No result, for a reason unrelated to the candidate: the process was killed from outside, or
    the machine ran out of a resource. A retry may succeed."""
