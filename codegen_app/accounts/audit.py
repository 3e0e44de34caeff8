"""The audit log: what people requested, and from where."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import models
from django.utils import timezone

from codegen_app.accounts.models import AuditEntry
from scheduler.text import one_line

_DELETE_BATCH = 10_000  # in one statement; the next round deletes the next batch


@dataclass(frozen=True)
class Origin:
    """The origin of an action: "" for workers and the command line."""

    address: str = ""
    user_agent: str = ""


_origin: ContextVar[Origin] = ContextVar("origin", default=Origin())  # noqa: B039 - frozen


@contextmanager
def override_origin(origin: Origin) -> Iterator[None]:
    """Record this origin for actions inside the context."""
    token = _origin.set(origin)
    try:
        yield
    finally:
        _origin.reset(token)


Person = AbstractBaseUser | AnonymousUser
_current_user: ContextVar[Callable[[], Person] | None] = ContextVar("asking", default=None)


@contextmanager
def override_user(get_person: Callable[[], Person]) -> Iterator[None]:
    """Make ``current_user`` return that person inside the context."""
    token = _current_user.set(get_person)
    try:
        yield
    finally:
        _current_user.reset(token)


def current_user() -> AbstractBaseUser | None:
    """Return the user of the current request, for code far from the view; None outside requests."""
    get_person = _current_user.get()
    person = get_person() if get_person is not None else None
    return person if isinstance(person, AbstractBaseUser) else None


def record(actor: AbstractBaseUser | None, action: str, row: models.Model, why: str = "") -> None:
    """Record an action on a row; ``actor`` None is the system. Part of the action's transaction."""
    note(actor, action, f"{row._meta.verbose_name} {row.pk}: {row}", why)


def note(actor: AbstractBaseUser | None, action: str, what: str, why: str = "") -> None:
    """Record an action that concerns no single row.

    Non-printing characters are escaped: an entry is one line that cannot imitate another.
    """
    origin = _origin.get()
    key = actor_id(actor)
    AuditEntry.objects.create(
        actor_id=key,
        actor_name=one_line(actor.get_username(), 150) if key and actor else "",
        address=origin.address or None,
        user_agent=one_line(origin.user_agent, 200),
        action=action[:40],
        what=one_line(what, 200),
        why=one_line(why, 500),
    )


def actor_id(actor: AbstractBaseUser | None) -> int | None:
    """Return the user's key for a column; None for the system."""
    return actor.pk if actor is not None and actor.is_authenticated else None


def delete_old() -> int:
    """Delete the oldest entries that exceed ``KILN_AUDIT_DAYS``; return how many."""
    before = timezone.now() - timedelta(days=settings.AUDIT_DAYS)
    old = AuditEntry.objects.filter(at__lt=before).order_by("at").values("pk")[:_DELETE_BATCH]
    deleted, _ = AuditEntry.objects.filter(pk__in=old).delete()
    return deleted
