"""Rejections of illegal configurations by the rules of templates."""

from __future__ import annotations

from scheduler.errors import Rejected, Stage


def illegal(reason: str, detail: str = "") -> Rejected:
    """Return a rejection by a rule: ``reason`` is one line, ``detail`` the numbers behind it."""
    return Rejected(Stage.RULE, reason, detail)
