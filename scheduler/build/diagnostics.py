"""Parse compiler output: errors and warnings at lines of the source."""

from __future__ import annotations

import re

from scheduler.build.model import Diagnostic


def parse_diagnostics(log: str, source_file: str) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of the kernel's own source, each once, in the log's order.

    Lines are ``file:line:column: severity: message``, as clang and gcc write them. The device and
    the host pass read the same text, so both may report the same.
    """
    line = rf"^{re.escape(source_file)}:(\d+):(\d+): (?:fatal )?(error|warning|note): (.*)$"
    found = (
        Diagnostic(match[3], int(match[1]), int(match[2]), match[4])
        for match in re.finditer(line, log, re.MULTILINE)
    )
    return tuple(dict.fromkeys(found))
