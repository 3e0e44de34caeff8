"""The result of one attempt to send something."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from scheduler.text import one_line

_MAX_ERROR_LENGTH = 500


class Outcome(Enum):
    """A temporary failure is retried, a permanent one is not."""

    THROUGH = "through"
    TEMPORARY = "temporary failure"
    PERMANENT = "permanent failure"


@dataclass(frozen=True)
class Attempt:
    """``error`` is one line, or ""; ``status`` is HTTP's; the receiver asked for no retry within
    ``retry_after_s`` seconds."""

    outcome: Outcome
    error: str = ""
    status: int | None = None
    retry_after_s: float = 0.0

    @classmethod
    def delivered(cls, status: int | None = None, note: str = "") -> Attempt:
        return cls(Outcome.THROUGH, _line(note), status)

    @classmethod
    def temporary(
        cls, error: str, status: int | None = None, retry_after_s: float = 0.0
    ) -> Attempt:
        """Return a failure that may succeed later."""
        return cls(Outcome.TEMPORARY, _line(error), status, retry_after_s)

    @classmethod
    def permanent(cls, error: str, status: int | None = None) -> Attempt:
        """Return a failure that lasts until the channel or its receiver is changed."""
        return cls(Outcome.PERMANENT, _line(error), status)


def _line(text: str) -> str:
    return one_line(text, _MAX_ERROR_LENGTH)
