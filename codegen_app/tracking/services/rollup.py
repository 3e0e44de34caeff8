"""Deletion by age, as policies define it, in steps of one transaction each: raw samples of points,
deliveries that are over (``notifying/outbox.py``), points of branches (``branch_retention.py``),
and points of a day but their median (``day_rollup.py``).

Where samples are deleted, value, interval, n, conditions and changes stay: these are other columns
and rows. An index holds the points that still have samples by source and age
(``datum_samples_by_age``). So a step reads no more than it writes, the next step continues where a
killed one began, and the next pass finds points that arrive late with an old date.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from codegen_app.tracking.models import Datum, RetentionPolicy, Source
from codegen_app.tracking.models.retention import Kept
from codegen_app.tracking.notifying import outbox
from codegen_app.tracking.services import branch_retention, day_rollup

STEP_ROWS = 5_000  # points per transaction: half a second
_STEPS_PER_TURN = 2  # per turn, so that no other step of the round waits long
PASS_INTERVAL = timedelta(hours=1)  # from one pass to the next
DAYS_INTERVAL = timedelta(days=1)  # the same for passes over days
MAX_COUNTED = 1_000_000  # limit of the preview on a page
_ROLL_UP = """
UPDATE codegen_app_datum SET samples = NULL WHERE id IN (
    SELECT id FROM codegen_app_datum
    WHERE samples IS NOT NULL AND source = %s AND measured_at < %s
    ORDER BY measured_at LIMIT %s
)
"""


def roll_up_due() -> int:
    """Run some steps of the due policies; return the number of points or deliveries.

    Safe from any number of workers at once: one holds a policy, the others skip it.
    """
    total = 0
    now = timezone.now()
    is_due = (
        Q(last_at=None)
        | Q(last_at__lt=now - DAYS_INTERVAL)
        | Q(~Q(what=Kept.POINTS), last_at__lt=now - PASS_INTERVAL)
    )
    due = RetentionPolicy.objects.filter(is_due | Q(begun_at__isnull=False), active=True)
    for key in due.order_by("pk").values_list("pk", flat=True):
        for _ in range(_STEPS_PER_TURN):
            rolled, is_over = step(key)
            total += rolled
            if is_over:
                break
    return total


def roll_up(policy: RetentionPolicy) -> int:
    """Run a whole pass of an active policy; return the number of points or deliveries."""
    total, is_over = 0, False
    while not is_over:
        rolled, is_over = step(policy.pk)
        total += rolled
    return total


@transaction.atomic
def step(key: int) -> tuple[int, bool]:
    """Roll up or delete about ``STEP_ROWS`` points or deliveries; return how many, and whether the
    pass is over: also if the policy was disabled, deleted, or is in use by another worker."""
    policy = RetentionPolicy.objects.select_for_update(skip_locked=True).filter(pk=key).first()
    if policy is None or not policy.active:
        return 0, True
    now = timezone.now()
    if policy.begun_at is None:
        policy.begun_at, policy.last_rows, policy.last_series = now, 0, 0
    before = _cutoff(policy, now)
    if policy.what == Kept.POINTS:
        rolled, policy.last_series = day_rollup.roll_up_days(before, policy.last_series, STEP_ROWS)
        is_over = not policy.last_series
    else:
        if policy.what == Kept.SAMPLES:
            rolled = _roll_up(policy, now)
        elif policy.what == Kept.BRANCHES:
            rolled = branch_retention.delete_points(before, STEP_ROWS)
        else:
            rolled = outbox.delete_deliveries(before, STEP_ROWS)
        is_over = rolled < STEP_ROWS
    policy.last_rows += rolled
    policy.total_rows += rolled
    if is_over:
        policy.begun_at, policy.last_at = None, now
    policy.save(update_fields=["begun_at", "last_at", "last_rows", "total_rows", "last_series"])
    return rolled, is_over


def count_due(policy: RetentionPolicy, most: int | None = None) -> int:
    """Return how many points or deliveries a pass would cover now, counted up to ``most``; nothing
    is written. Of the points of days, those that it would look at."""
    before = _cutoff(policy, timezone.now())
    rows: QuerySet[Any]
    if policy.what == Kept.DELIVERIES:
        rows = outbox.deliveries_ended_before(before)
    elif policy.what == Kept.BRANCHES:
        rows = branch_retention.expired_points(before)
    elif policy.what == Kept.POINTS:
        rows = day_rollup.due_points(before)
    else:
        rows = Datum.objects.filter(
            samples__isnull=False, source__in=_sources(policy), measured_at__lt=before
        )
    return rows.count() if most is None else rows.order_by()[: most + 1].count()


def _roll_up(policy: RetentionPolicy, now: datetime) -> int:
    rolled = 0
    with connection.cursor() as cursor:
        for source in _sources(policy):
            if rolled < STEP_ROWS:
                cursor.execute(_ROLL_UP, [source, _cutoff(policy, now), STEP_ROWS - rolled])
                rolled += cursor.rowcount
    return rolled


def format_count(policy: RetentionPolicy, count: int) -> str:
    """Return ``12 points`` or ``3 deliveries``."""
    rows = "deliveries" if policy.what == Kept.DELIVERIES else "points"
    return f"{count:,} {rows}"


def format_due(policy: RetentionPolicy, count: int) -> str:
    """Return what a pass would cover, by ``count_due``."""
    text = format_count(policy, count)
    return f"{text} (one a day stays)" if policy.what == Kept.POINTS else text


def _sources(policy: RetentionPolicy) -> list[str]:
    return [policy.source] if policy.source else list(Source.values)


def _cutoff(policy: RetentionPolicy, now: datetime) -> datetime:
    return now - timedelta(days=policy.days)
