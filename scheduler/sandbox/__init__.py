"""The sandbox that confines a process handling untrusted input to its own folder.

A ``Sandbox`` lists what a process may do; ``start`` starts a program in it, ``enter`` puts the
calling process into it, and ``sandbox_status`` reports which parts this machine supports
(ADR 0011).
"""

from scheduler.sandbox.launch import enter, start
from scheduler.sandbox.model import Limits, Sandbox
from scheduler.sandbox.status import Protection, Status, require, sandbox_status

__all__ = [
    "Limits",
    "Protection",
    "Sandbox",
    "Status",
    "enter",
    "require",
    "sandbox_status",
    "start",
]
