"""Ending commands and servers with one line if their environment is invalid."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import ImproperlyConfigured


@contextmanager
def exit_with_one_line() -> Iterator[None]:
    """Report an invalid setting without a traceback, and end the process."""
    try:
        yield
    except ImproperlyConfigured as error:
        sys.exit(f"kiln: {error}")
