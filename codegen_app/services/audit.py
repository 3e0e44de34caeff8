"""The record of what people asked for."""

from __future__ import annotations

from django.contrib.auth.models import AbstractBaseUser
from django.db import models

from codegen_app.models import AuditEntry


def record(actor: AbstractBaseUser | None, action: str, row: models.Model, why: str = "") -> None:
    """Note an act on a row; ``actor`` None is the system itself. Part of the act's transaction."""
    what = f"{row._meta.verbose_name} {row.pk}: {row}"[:200]
    AuditEntry.objects.create(actor_id=_id(actor), action=action, what=what, why=why[:500])


def _id(actor: AbstractBaseUser | None) -> int | None:
    return actor.pk if actor is not None and actor.is_authenticated else None
