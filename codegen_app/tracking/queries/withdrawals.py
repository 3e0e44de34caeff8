"""Withdrawn points, as pages show them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from codegen_app.tracking.models import Withdrawal
from scheduler.track.units import format_value

MAX_WITHDRAWALS = 200


@dataclass(frozen=True)
class WithdrawalRow:
    """Who withdrew a point, when and why, and who restored it, if anyone did."""

    datum: int
    datum_url: str
    figure: str
    revision: str
    place: datetime
    reason: str
    by: str
    at: datetime
    restored_by: str
    restored_at: datetime | None


def withdrawals_of_series(pk: int, unit: str) -> tuple[WithdrawalRow, ...]:
    """Return withdrawals of a series, restored ones too, the latest first; at most
    ``MAX_WITHDRAWALS`` (1 query)."""
    return _rows(Withdrawal.objects.filter(series=pk).order_by("-pk")[:MAX_WITHDRAWALS], unit)


def withdrawals_of_point(pk: int, unit: str) -> tuple[WithdrawalRow, ...]:
    """Return withdrawals of a point, the latest first (1 query)."""
    return _rows(Withdrawal.objects.filter(datum=pk).order_by("-pk")[:MAX_WITHDRAWALS], unit)


def _rows(found: QuerySet[Withdrawal], unit: str) -> tuple[WithdrawalRow, ...]:
    related = found.select_related("datum__revision", "by", "restored_by").defer("datum__samples")
    return tuple(
        WithdrawalRow(
            datum=row.datum_id,
            datum_url=row.datum.get_absolute_url(),
            figure=format_value(row.datum.value, unit),
            revision=str(row.datum.revision),
            place=row.datum.at,
            reason=row.reason,
            by=row.by.get_username() if row.by else "",
            at=row.at,
            restored_by=row.restored_by.get_username() if row.restored_by else "",
            restored_at=row.restored_at,
        )
        for row in related
    )
