"""The outcomes that are no bugs: a user's mistake, a lack of the machine, and a rejection, which is
kept as data.

An exception is for a bug or for a mistake that its author can mend; everything else that can go
wrong with a candidate (it cannot serve, does not compile, is wrong, hangs, crashes) is a
``Rejected`` that is recorded and shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from scheduler.text import escape_log, one_line


class UserError(Exception):
    """A mistake of the caller: one line that says what is wrong, where, and how to mend it.

    The command line prints it to stderr and exits with 2; the web pages show it as it is. Names in
    it may be of a file and hold anything: it is one line all the same, and no longer than a line.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(one_line(message))


class MachineError(UserError):
    """A lack of the machine (no space, no memory, a folder that cannot be written), no mistake in
    what was asked for: the same may go well once that is mended."""


class Stage(StrEnum):
    """The step at which a candidate was rejected."""

    RULE = "rule"
    RENDER = "render"
    COMPILE = "compile"
    MODEL = "model"  # of what is modelled, not run
    LOAD = "load"
    CHECK = "check"
    RUN = "run"
    TIMEOUT = "timeout"
    CRASH = "crash"


@dataclass(frozen=True)
class Rejected:
    """A candidate's rejection: kept to the end and shown, never raised.

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
    """No result, for a reason that says nothing of the candidate: a process was ended from outside,
    or the machine lacked something. Trying again may give one."""
