"""Channels: adding, changing, enabling, disabling and testing them; retrying deliveries."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.utils import timezone

from codegen_app.accounts import audit
from codegen_app.tracking.models import Channel, ChannelKind, Delivery, DeliveryState
from codegen_app.tracking.notifying import signing, weekly
from codegen_app.workers import queue
from scheduler.errors import UserError

_RESET_FIELDS = {"state": DeliveryState.PENDING}
_MAX_OPEN_TESTS = 3  # waiting tests per channel


def add_channel(actor: AbstractBaseUser, fields: Mapping[str, Any]) -> Channel:
    """Add a channel; raises ``UserError`` for a name that is taken."""
    row = Channel(created_by_id=actor.pk, **fields)
    if row.kind == ChannelKind.WEBHOOK:
        row.key_salt = signing.new_salt()
    if row.weekday is not None:
        _begin_digests(row)
    _save(actor, row, "add channel")
    return row


@transaction.atomic
def change_channel(actor: AbstractBaseUser, row: Channel, fields: Mapping[str, Any]) -> None:
    """Change the given fields; raises ``UserError`` for a name that is taken."""
    different = [name for name, value in fields.items() if getattr(row, name) != value]
    if not different:
        return
    begins = row.weekday is None and fields.get("weekday") is not None
    if "weekday" in different and fields["weekday"] is None:
        weekly.enqueue_rest(row)
    for name in different:
        setattr(row, name, fields[name])
    if begins:
        _begin_digests(row)
    _save(
        actor,
        row,
        "change channel",
        ", ".join(different),
        # A digest that is due at this moment moves its time by itself.
        columns=[*different, *(["digest_until"] if begins else [])],
    )


@transaction.atomic
def set_active(actor: AbstractBaseUser, row: Channel, *, on: bool) -> bool:
    """Enable or disable a channel; deliveries that wait for a disabled one are no longer sent.
    Returns False if nothing changes."""
    if not Channel.objects.filter(pk=row.pk, active=not on).update(active=on):
        return False
    if on and row.weekday is not None:
        _begin_digests(row)
        row.save(update_fields=["digest_until"])
    if not on:
        row.deliveries.filter(**_RESET_FIELDS).update(
            state=DeliveryState.FAILED, error="the channel was switched off", ended_at=Now()
        )
    audit.record(actor, f"switch channel {'on' if on else 'off'}", row)
    return True


@transaction.atomic
def renew_key(actor: AbstractBaseUser, row: Channel) -> None:
    """Replace the signing key; the earlier one signs nothing more."""
    if row.kind != ChannelKind.WEBHOOK:
        raise UserError(f"channels of the type {row.get_kind_display()} have no signing key")
    row.key_salt = signing.new_salt()
    row.save(update_fields=["key_salt"])
    audit.record(actor, "renew channel key", row)


@transaction.atomic
def send_test(actor: AbstractBaseUser, row: Channel) -> Delivery:
    """Send a test message in the same way as all others. Raises ``UserError``."""
    Channel.objects.select_for_update().get(pk=row.pk)
    if not row.active:
        raise UserError(f"{row} is switched off: switch it on to test it")
    tests = row.deliveries.filter(event=None, digest_until=None)
    if tests.filter(**_RESET_FIELDS).count() >= _MAX_OPEN_TESTS:
        raise UserError(
            f"{row} already has {_MAX_OPEN_TESTS} pending tests: wait for their results"
        )
    delivery = Delivery.objects.create(channel=row, key=uuid.uuid4(), next_at=timezone.now())
    audit.record(actor, "test channel", row)
    queue.notify(queue.Kind.NOTIFY)
    return delivery


@transaction.atomic
def retry(actor: AbstractBaseUser, row: Delivery) -> bool:
    """Retry a failed or waiting delivery at once; return False if it was delivered."""
    open_ones = Delivery.objects.filter(pk=row.pk).exclude(state=DeliveryState.DELIVERED)
    if not open_ones.update(state=DeliveryState.PENDING, next_at=Now(), ended_at=None):
        return False
    audit.record(actor, "send again", row)
    queue.notify(queue.Kind.NOTIFY)
    return True


def _save(
    actor: AbstractBaseUser,
    row: Channel,
    action: str,
    why: str = "",
    columns: Sequence[str] | None = None,
) -> None:
    try:
        with transaction.atomic():
            row.save(update_fields=columns)
            audit.record(actor, action, row, why)
    except IntegrityError as error:
        if Channel.objects.filter(name=row.name).exclude(pk=row.pk).exists():
            raise UserError(f"a channel named {row.name!r} already exists") from error
        raise


def _begin_digests(row: Channel) -> None:
    """Let the next scheduled digest cover the week before it, but nothing that one covered."""
    last = weekly.last_scheduled(row, timezone.now())
    row.digest_until = max(last, row.digest_until or last)
