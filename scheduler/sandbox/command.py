"""Become a command in a sandbox: ``launch.start`` runs this for commands that stay in one group.

The process leads its process group before it enters the sandbox, which then keeps all that the
command starts in this group. The kernel ends the command when the thread that started it ends.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

from scheduler.sandbox.launch import enter
from scheduler.sandbox.rpc import parse_sandbox

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main() -> None:
    """Enter the sandbox of the first argument, and execute the others. Does not return."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    try:
        enter(parse_sandbox(sys.argv[1]))
        os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 - no shell is meant
    except OSError as error:
        sys.exit(f"{sys.argv[2]}: {error.strerror or error}")
