"""What the rules of templates say of a configuration that is not legal."""

from __future__ import annotations

from scheduler.errors import Rejected, Stage


def illegal(reason: str, detail: str = "") -> Rejected:
    """The rejection by a rule: ``reason`` is one line, ``detail`` the numbers behind it."""
    return Rejected(Stage.RULE, reason, detail)
