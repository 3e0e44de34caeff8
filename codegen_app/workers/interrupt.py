"""Interrupting long computations of this process from the thread that sees a lost lease."""

from __future__ import annotations

import ctypes
import threading
from types import TracebackType
from typing import Self

from django.db import connection

from codegen_app.workers.work import LeaseLostError


class Interruptible:
    """A context manager: while its body runs, ``stop`` raises ``LeaseLostError`` in it, from any
    other thread. For work in Python, which cannot be interrupted in another way."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._stopped = False

    def __enter__(self) -> Self:
        self._thread = threading.get_ident()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            self._thread = None
        if self._stopped and not connection.in_atomic_block:
            connection.close()  # it may have been in the middle of a query

    def stop(self) -> None:
        """End the body if it is still running."""
        with self._lock:
            if self._thread is None or self._stopped:
                return
            self._stopped = True
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._thread), ctypes.py_object(LeaseLostError)
            )
