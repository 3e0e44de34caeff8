"""Machine failures, as opposed to failures of the work: the work succeeds once they are repaired.

A machine failure puts a row back into the queue with a growing pause and the reason
(``work.attempt``), and answers a request with a page that asks to try again. Every other exception
is a bug, or a user's mistake.
"""

from __future__ import annotations

import errno
import os
import socket
from dataclasses import dataclass

from django.db import InterfaceError, OperationalError
from psycopg.errors import DiskFull

from codegen_app.platform.files import MissingFileError
from scheduler.errors import MachineError

_RESOURCE_ERRORS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the quota of the disk is used up",
    errno.EIO: "the disk cannot be read or written",
    errno.EROFS: "the disk is read-only",
    errno.EMFILE: "too many files are open",
    errno.ENFILE: "too many files are open",
    errno.ENOMEM: "memory ran out",
    errno.EAGAIN: "no more processes can be started",
    errno.ESTALE: "a network folder is not available",
}
_NOT_WRITABLE = (errno.EACCES, errno.EPERM)


class MachineFaultError(Exception):
    """A machine failure, in one line; ``of_row`` if the row may have caused it."""

    def __init__(self, reason: str, *, of_row: bool = False) -> None:
        super().__init__(reason)
        self.of_row = of_row


@dataclass(frozen=True)
class Fault:
    """``reason`` is one line; ``of_row``: counted, since the row's own work may be the cause."""

    reason: str
    of_row: bool = False


def fault_of(error: BaseException) -> Fault | None:
    """Return the machine failure behind an exception, or None."""
    host = socket.gethostname()
    if isinstance(error, MachineFaultError):
        return Fault(f"{error} (on {host})", error.of_row)
    if isinstance(error, MachineError):
        return Fault(f"{error} (on {host})")
    if isinstance(error, MissingFileError):
        return Fault(f"{error}: import or build it again")
    if isinstance(error, MemoryError):
        return Fault(f"memory ran out on {host}", of_row=True)
    if isinstance(error, InterfaceError | OperationalError):
        full = isinstance(error.__cause__, DiskFull)
        return Fault("the database's disk is full" if full else "the database was away")
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return Fault(f"no more threads can be started on {host}")
    if not isinstance(error, OSError):
        return None
    what = f": {error.filename}" if error.filename else ""
    if error.errno in _RESOURCE_ERRORS:
        return Fault(
            f"{_RESOURCE_ERRORS[error.errno]} on {host}{what}", of_row=error.errno == errno.ENOMEM
        )
    if "No usable temporary directory" in str(error):
        return Fault(f"no temporary folder of {host} can be written")
    if error.errno in _NOT_WRITABLE and error.filename and not os.access(error.filename, os.W_OK):
        return Fault(f"{error.filename} cannot be written on {host}")
    return None
