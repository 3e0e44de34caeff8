"""A record of the log is a line, whatever it names; tracebacks are indented."""

from __future__ import annotations

import logging
import logging.config
import sys

from django.conf import settings

FORGED = "model\n2026-01-01 00:00:00,000 ERROR codegen_app forged\x1b[2J\N{RIGHT-TO-LEFT OVERRIDE}"


def written(message: str, *arguments: object, error: bool = False) -> list[str]:
    """The lines of a record, by the settings' formatter."""
    made = logging.config.DictConfigurator(settings.LOGGING)
    formatter = made.configure_formatter(dict(settings.LOGGING["formatters"]["line"]))
    found = sys.exc_info() if error else None
    record = logging.LogRecord("kiln", logging.WARNING, __file__, 1, message, arguments, found)
    return str(formatter.format(record)).split("\n")


def test_a_record_is_one_short_line() -> None:
    (line,) = written("%s cannot be tuned", FORGED + "x" * 10**6)
    assert line.isprintable()
    assert line.endswith("cannot be tuned")
    assert len(line) <= 4000


def test_a_tracebacks_lines_are_indented() -> None:
    try:
        raise ValueError(FORGED)
    except ValueError:
        first, *others = written("failed", error=True)
    assert first.endswith("failed")
    assert any("forged" in line for line in others)
    assert all(line.startswith("  ") and line.isprintable() for line in others)
