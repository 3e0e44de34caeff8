"""The record of what people asked for."""

from __future__ import annotations

from django.contrib.auth.models import AbstractBaseUser
from django.db import models

from codegen_app.models import AuditEntry


def record(actor: AbstractBaseUser | None, action: str, row: models.Model, why: str = "") -> None:
    """Note an act on a row; ``actor`` None is the system itself. Part of the act's transaction."""
    note(actor, action, f"{row._meta.verbose_name} {row.pk}: {row}", why)


def note(actor: AbstractBaseUser | None, action: str, what: str, why: str = "") -> None:
    """Note an act that is about no single row."""
    AuditEntry.objects.create(
        actor_id=actor_id(actor), action=action, what=what[:200], why=why[:500]
    )


def actor_id(actor: AbstractBaseUser | None) -> int | None:
    """Who it was, for a column; None for the system itself."""
    return actor.pk if actor is not None and actor.is_authenticated else None
