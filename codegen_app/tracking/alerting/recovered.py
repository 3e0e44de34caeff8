"""Alerts that have been back at the previous level for days: Kiln closes them as fixed.

Later points that disprove the recovery reopen them (``creation``). A reopened alert
stays open until it recovers again.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.utils import timezone

from codegen_app.tracking.alerting.events import change_alert
from codegen_app.tracking.models import (
    OPEN_ALERT_STATES,
    Alert,
    AlertEvent,
    AlertState,
    EventKind,
)

BATCH_SIZE = 200


def close_alerts() -> int:
    """Close the alerts that are due; return how many."""
    before = timezone.now() - timedelta(days=settings.RECOVERED_DAYS)
    count = 0
    while closed := _close_some(before):
        count += closed
    return count


@transaction.atomic
def _close_some(before: datetime) -> int:
    rows = _recovered_before(before).select_for_update(skip_locked=True, of=("self",))
    alerts = list(rows.order_by("pk")[:BATCH_SIZE])
    note = f"at the previous level for {settings.RECOVERED_DAYS} days"
    for alert in alerts:
        change_alert(alert, EventKind.STATE, {"state": AlertState.FIXED.value}, note=note)
    return len(alerts)


def _recovered_before(moment: datetime) -> QuerySet[Alert]:
    """Return open alerts of changes whose recovery was recorded before then, and that Kiln has not
    closed since."""
    events = AlertEvent.objects.filter(alert=OuterRef("pk"))
    latest = events.filter(kind=EventKind.RECOVERED).order_by("-pk")
    closed = events.filter(
        kind=EventKind.STATE, by=None, after__state=AlertState.FIXED, pk__gt=OuterRef("recovery")
    )
    recovered = Alert.objects.filter(
        state__in=OPEN_ALERT_STATES, recovered_at__isnull=False, revision__isnull=False
    ).annotate(recovery=Subquery(latest.values("pk")[:1]))
    return recovered.filter(
        Exists(AlertEvent.objects.filter(pk=OuterRef("recovery"), at__lt=moment)), ~Exists(closed)
    )
