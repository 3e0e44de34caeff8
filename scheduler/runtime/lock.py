"""Exclusive use of a device across processes: nothing else may run during timing."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class DeviceBusy(Exception):  # noqa: N818 - a state, not an error
    """Another process holds the device; the message has its process id, if known."""


@contextmanager
def lock_device(device_id: str, folder: Path, wait: bool = True) -> Iterator[None]:
    """Hold the device's lock: a file in ``folder``, whose name is the same for all processes.

    The lock belongs to the open file, so the system releases it whenever the process ends. Raises
    ``DeviceBusy`` if the lock is taken and ``wait`` is false.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (re.sub(r"[^A-Za-z0-9.-]", "_", device_id) + ".lock")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
            raise DeviceBusy(f"device {device_id} is in use by process {holder}") from None
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
