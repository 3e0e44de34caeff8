"""What keeps a process that handles untrusted input to its own folder, and what of it holds here.

A ``Fence`` says what a process may do; ``start`` starts a program behind it, ``enter`` puts the
calling process behind it, and ``in_force`` says which parts this machine offers (ADR 0011).
"""

from scheduler.sandbox.launch import enter, start
from scheduler.sandbox.model import Limits, Sandbox
from scheduler.sandbox.status import Protection, Status, in_force, require

__all__ = ["Limits", "Protection", "Sandbox", "Status", "enter", "in_force", "require", "start"]
