"""Withdrawn points, as pages show them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from codegen_app.tracking.models import Withdrawal
from codegen_app.web.row import build_row, username
from scheduler.track.units import format_value

MAX_WITHDRAWALS = 200


@dataclass(frozen=True)
class WithdrawalRow:
    """Who withdrew a point, when and why, and who restored it, if anyone did ("": Kiln itself).
    ``alert`` is that of the machine with which it was set aside."""

    datum: int
    datum_url: str
    figure: str
    revision: str
    place: datetime
    reason: str
    by: str
    at: datetime
    alert: int | None
    restored_by: str
    restored_at: datetime | None


def withdrawal_rows(unit: str, **condition: int) -> tuple[WithdrawalRow, ...]:
    """Return withdrawals of a series (``series=``) or of a point (``datum=``), restored ones too,
    the latest first; at most ``MAX_WITHDRAWALS`` (1 query)."""
    found = Withdrawal.objects.filter(**condition).order_by("-pk")[:MAX_WITHDRAWALS]
    related = found.select_related("datum__revision", "by", "restored_by").defer("datum__samples")
    return tuple(
        build_row(
            WithdrawalRow,
            row,
            datum=row.datum_id,
            datum_url=row.datum.get_absolute_url(),
            figure=format_value(row.datum.value, unit),
            revision=str(row.datum.revision),
            place=row.datum.at,
            by=username(row.by),
            alert=row.alert_id,
            restored_by=username(row.restored_by),
        )
        for row in related
    )
