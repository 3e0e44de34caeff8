"""Withdrawing, restoring and deleting points: their series are counted and checked again from there
on."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.utils import timezone

from codegen_app.accounts import audit
from codegen_app.tracking.models import Datum, Series, Withdrawal
from codegen_app.tracking.services.recount import recount_and_recheck
from scheduler.errors import UserError
from scheduler.results.points import fields

MAX_REASON_LENGTH = 500


@transaction.atomic
def withdraw(datum: Datum, reason: str, by: AbstractBaseUser) -> Withdrawal:
    """Withdraw a point from comparisons; it stays, with the reason.

    Raises ``UserError`` without a reason, and for a point that is already withdrawn.
    """
    series = _lock_series([datum.series_id])[0]
    stored_reason = fields.as_text(reason.strip(), "reason", MAX_REASON_LENGTH)
    if not stored_reason:
        raise UserError("reason: enter the reason for the withdrawal")
    if datum.withdrawals.filter(restored_at=None).exists():
        raise UserError(f"point {datum.pk} is already withdrawn")
    withdrawal = Withdrawal.objects.create(
        datum=datum, series=series, reason=stored_reason, by_id=audit.actor_id(by)
    )
    audit.record(by, "withdraw", datum, stored_reason)
    recount_and_recheck([(series, datum.at)])
    return withdrawal


@transaction.atomic
def restore(datum: Datum, by: AbstractBaseUser) -> Withdrawal:
    """Restore a withdrawn point: it is compared with others again.

    Raises ``UserError`` for a point that is not withdrawn.
    """
    series = _lock_series([datum.series_id])[0]
    row = datum.withdrawals.filter(restored_at=None).first()
    if row is None:
        raise UserError(f"point {datum.pk} is not withdrawn")
    row.restored_at = timezone.now()
    row.restored_by_id = audit.actor_id(by)
    row.save(update_fields=["restored_at", "restored_by"])
    audit.record(by, "restore", datum, row.reason)
    recount_and_recheck([(series, datum.at)])
    return row


@transaction.atomic
def delete(data: Iterable[Datum], by: AbstractBaseUser | None) -> None:
    """Delete points permanently. Raises ``ProtectedError`` for one that a change begins with."""
    rows = list(data)
    series = {row.pk: row for row in _lock_series({row.series_id for row in rows})}
    for row in rows:
        audit.record(by, "delete", row)
    Datum.objects.filter(pk__in=[row.pk for row in rows]).delete()
    firsts: dict[int, datetime] = {}
    for row in rows:
        firsts[row.series_id] = min(firsts.get(row.series_id, row.at), row.at)
    recount_and_recheck([(series[pk], at) for pk, at in firsts.items()])


def _lock_series(keys: Iterable[int]) -> list[Series]:
    """Lock the series in a fixed order, so that transactions do not deadlock."""
    return list(Series.objects.filter(pk__in=keys).order_by("pk").select_for_update())
