"""How commands and servers end where their environment cannot be used: with one line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import ImproperlyConfigured


@contextmanager
def exit_with_one_line() -> Iterator[None]:
    """What a setting is wrong about is said without a traceback, and the process ends."""
    try:
        yield
    except ImproperlyConfigured as error:
        sys.exit(f"kiln: {error}")
