"""What the benchmarks print."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    """A line of the table, at once: benchmarks take long."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
