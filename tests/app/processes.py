"""Looking at processes, without polling where the system can tell."""

from __future__ import annotations

import os
import select
from pathlib import Path


def alive(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def wait_until_gone(pid: int) -> None:
    """pidfd_open becomes readable when the process ends."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    readable, _, _ = select.select([descriptor], [], [], 60)
    os.close(descriptor)
    assert readable, f"process {pid} is still there"
