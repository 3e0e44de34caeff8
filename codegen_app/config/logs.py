"""How lines of the log are written: one for each record, whatever it speaks of."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import TypeAlias

from scheduler.text import one_line

MAX_RECORD = 4_000  # characters of one
ExcInfo: TypeAlias = (
    tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
)


class LineFormatter(logging.Formatter):
    """Names in a message come from files and requests: no line end in one begins a line that looks
    like a record. The lines of a traceback are indented."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        return one_line(super().formatMessage(record), MAX_RECORD)

    def formatException(self, ei: ExcInfo) -> str:  # noqa: N802 - the library's name
        lines = super().formatException(ei).split("\n")
        return "\n".join(f"  {one_line(line, MAX_RECORD)}" for line in lines)
