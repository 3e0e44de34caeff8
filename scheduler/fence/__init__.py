"""What keeps a process that handles untrusted input to its own folder, and what of it holds here.

A ``Fence`` says what a process may do; ``start`` starts a program behind it, ``enter`` puts the
calling process behind it, and ``in_force`` says which parts this machine offers (ADR 0011).
"""

from scheduler.fence.model import Fence, Limits
from scheduler.fence.process import enter, start
from scheduler.fence.statement import Part, Statement, in_force, require

__all__ = ["Fence", "Limits", "Part", "Statement", "enter", "in_force", "require", "start"]
