"""The format of log lines: one per record, whatever its content.

``KILN_LOG_FORMAT`` selects it: lines for people, or JSON for log collectors.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TypeAlias

from codegen_app.platform.config import context
from scheduler.text import one_line, shorten

MAX_RECORD = 4_000  # characters per record
_MAX_TRACEBACK = 20_000
FIELDS = "kiln_fields"  # additional fields of a record's object, by this name in ``extra``
ExcInfo: TypeAlias = (
    tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
)


class LineFormatter(logging.Formatter):
    """Names in a message come from files and requests: no line end in a name begins a line that
    looks like a record. The lines of a traceback are indented."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        return one_line(super().formatMessage(record), MAX_RECORD)

    def formatException(self, ei: ExcInfo) -> str:  # noqa: N802 - the library's name
        lines = super().formatException(ei).split("\n")
        return "\n".join(f"  {one_line(line, MAX_RECORD)}" for line in lines)


class JsonFormatter(logging.Formatter):
    """A JSON object per line, in ASCII only: whatever a name holds, it ends no line and controls no
    terminal. ``time`` is in UTC."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, without its line end."""
        created = datetime.fromtimestamp(record.created, UTC)
        fields = {
            name: shorten(value, MAX_RECORD) if isinstance(value, str) else value
            for name, value in getattr(record, FIELDS, {}).items()
        }
        line: dict[str, Any] = {
            "time": created.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": shorten(record.getMessage(), MAX_RECORD),
            **context.record_context(record),
            **fields,
        }
        if record.exc_info and record.exc_info[1] is not None:
            text = self.formatException(record.exc_info)
            line["exception"] = shorten(text, _MAX_TRACEBACK)
        return json.dumps(line, default=str)
