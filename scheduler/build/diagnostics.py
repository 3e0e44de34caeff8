"""The compiler's words, read: errors and warnings at lines of the source."""

from __future__ import annotations

import re

from scheduler.build.commands import SOURCE
from scheduler.build.model import Diagnostic

_LINE = re.compile(
    rf"^{re.escape(SOURCE)}:(\d+):(\d+): (?:fatal )?(error|warning|note): (.*)$", re.MULTILINE
)
_ANY_ERROR = re.compile(r"^.*?\b(?:fatal )?error: .*$", re.MULTILINE)


def diagnostics(log: str) -> tuple[Diagnostic, ...]:
    """What a build's log says of the kernel's own source, each once, in the log's order.

    The device and the host pass read the same text, so each of them may say the same thing.
    """
    found = (
        Diagnostic(match[3], int(match[1]), int(match[2]), match[4])
        for match in _LINE.finditer(log)
    )
    return tuple(dict.fromkeys(found))


def first_error(log: str) -> str:
    """One line for a table; empty where the log names no error."""
    for diagnostic in diagnostics(log):
        if diagnostic.severity == "error":
            return f"line {diagnostic.line}: {diagnostic.message}"
    match = _ANY_ERROR.search(log)
    return match[0].strip() if match else ""
