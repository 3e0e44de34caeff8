"""Output of commands: tables, JSON and progress."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from scheduler.text import one_line


def print_json(data: Any) -> None:
    """Print a JSON document on standard output."""
    json.dump(data, sys.stdout, indent=2)
    sys.stdout.write("\n")


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table; columns of numbers are right-aligned."""
    cells = [
        [
            f"{value:.3g}"
            if isinstance(value, float)
            else one_line("" if value is None else str(value))
            for value in row
        ]
        for row in rows
    ]
    widths = [
        max([len(name), *(len(row[column]) for row in cells)]) for column, name in enumerate(header)
    ]
    numeric = [
        all(isinstance(row[column], int | float) for row in rows) and bool(rows)
        for column in range(len(header))
    ]
    for line in [list(header), *cells]:
        padded = [
            text.rjust(width) if is_numeric else text.ljust(width)
            for text, width, is_numeric in zip(line, widths, numeric, strict=True)
        ]
        sys.stdout.write("  ".join(padded).rstrip() + "\n")


def print_line(text: str) -> None:
    """Print one line on standard output; control characters are escaped."""
    sys.stdout.write(one_line(text) + "\n")


def print_progress(text: str) -> None:
    """Print one line on standard error, which keeps standard output to the result."""
    sys.stderr.write(one_line(text) + "\n")
    sys.stderr.flush()
