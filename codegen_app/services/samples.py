"""Raw samples of points roll up with age, where a policy says so: in steps, each a transaction.

Value, interval, n, conditions and changes are other columns and other rows, and stay. An index
holds the points that still have samples by source and age (``datum_samples_by_age``), so that a
step reads no more than it writes, the next one goes on where a killed one began, and points that
arrive late with an old date are found by the next pass.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from codegen_app.models import Datum, RetentionPolicy, Source

STEP = 5_000  # points of one transaction: half a second
_STEPS = 2  # of one turn, so that no other step of the round waits long
AGAIN = timedelta(hours=1)  # from a pass to the next
MOST_COUNTED = 1_000_000  # of what a page says beforehand
_ROLL_UP = """
UPDATE codegen_app_datum SET samples = NULL WHERE id IN (
    SELECT id FROM codegen_app_datum
    WHERE samples IS NOT NULL AND source = %s AND measured_at < %s
    ORDER BY measured_at LIMIT %s
)
"""


def roll_up_due() -> int:
    """Some steps of the policies whose turn it is; how many points were rolled up.

    Safe from any number of workers at once: one of them holds a policy, the others pass by.
    """
    total = 0
    for key in _due().order_by("pk").values_list("pk", flat=True):
        for _ in range(_STEPS):
            rolled = step(key)
            total += rolled
            if rolled < STEP:
                break
    return total


def roll_up(policy: RetentionPolicy) -> int:
    """A whole pass of an active policy, at once: how many points were rolled up."""
    total, rolled = 0, STEP
    while rolled == STEP:
        rolled = step(policy.pk)
        total += rolled
    return total


@transaction.atomic
def step(key: int) -> int:
    """Roll up at most ``STEP`` points: how many. Fewer than that where the pass is over; none where
    the policy was switched off, is gone, or is another worker's just now."""
    policy = RetentionPolicy.objects.select_for_update(skip_locked=True).filter(pk=key).first()
    if policy is None or not policy.active:
        return 0
    now = timezone.now()
    if policy.begun_at is None:
        policy.begun_at, policy.last_points = now, 0
    rolled = _roll_up(policy, now)
    policy.last_points += rolled
    policy.total_points += rolled
    if rolled < STEP:
        policy.begun_at, policy.last_at = None, now
    policy.save(update_fields=["begun_at", "last_at", "last_points", "total_points"])
    return rolled


def waiting(policy: RetentionPolicy, most: int | None = None) -> int:
    """How many points a pass would roll up now, counted up to ``most``; nothing is written."""
    rows = Datum.objects.filter(
        samples__isnull=False,
        source__in=_sources(policy),
        measured_at__lt=_before(policy, timezone.now()),
    )
    return rows.count() if most is None else rows.order_by()[: most + 1].count()


def _roll_up(policy: RetentionPolicy, now: datetime) -> int:
    rolled = 0
    with connection.cursor() as cursor:
        for source in _sources(policy):
            if rolled < STEP:
                cursor.execute(_ROLL_UP, [source, _before(policy, now), STEP - rolled])
                rolled += cursor.rowcount
    return rolled


def _due() -> QuerySet[RetentionPolicy]:
    waits = Q(last_at=None) | Q(last_at__lt=timezone.now() - AGAIN) | Q(begun_at__isnull=False)
    return RetentionPolicy.objects.filter(waits, active=True)


def _sources(policy: RetentionPolicy) -> list[str]:
    return [policy.source] if policy.source else list(Source.values)


def _before(policy: RetentionPolicy, now: datetime) -> datetime:
    return now - timedelta(days=policy.samples_days)
