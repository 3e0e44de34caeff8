"""The site's state from the rows, as Prometheus metric families: gauges, read at each scrape.

Each part has its own short limit in the database. A part that takes longer is left out, and
``kiln_metrics_part_ok`` is 0 for it: a missing figure is not zero.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta

from django.db import DatabaseError, connection, transaction
from django.db.models import Count, Max, Min, QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from prometheus_client import generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from codegen_app.kernels.models import Build
from codegen_app.site import backlog
from codegen_app.tracking.models import (
    OPEN_ALERT_STATES,
    Alert,
    Datum,
    Delivery,
    DeliveryState,
    Remeasurement,
)
from codegen_app.tracking.services import detection
from codegen_app.tuning.models import TuningRun, TuningTask
from codegen_app.tuning.services import ledger
from codegen_app.workers import work
from codegen_app.workers.models import State, Worker
from codegen_app.workers.queue import Kind, queue_name
from scheduler.text import one_line

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
LIMIT_MS = 1000  # of each statement
_NEWEST = 100_000  # the newest points that are examined, of perhaps ten million
_RECENT = timedelta(hours=1)

Families = Iterable[GaugeMetricFamily]
log = logging.getLogger(__name__)


def exposition() -> bytes:
    """Return all families in Prometheus's text format; the caller has checked the database."""
    return generate_latest(_Rows())


class _Rows(Collector):
    """Reads the rows once per scrape."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the families of all parts."""
        ok = GaugeMetricFamily(
            "kiln_metrics_part_ok", "1 where a part's figures are here, 0 where they took too long",
            labels=["part"],
        )  # fmt: skip
        for name, part in PARTS.items():
            families = _run_limited(name, part)
            ok.add_metric([name], float(families is not None))
            yield from families or ()
        yield ok


def _run_limited(name: str, part: Callable[[], Families]) -> list[GaugeMetricFamily] | None:
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL statement_timeout = {LIMIT_MS}")
            return list(part())
    except DatabaseError as error:
        log.warning("metrics leave out %s: %s", name, one_line(str(error)))
        return None


def _queues() -> Families:
    count = GaugeMetricFamily(
        "kiln_queue_waiting", "What a worker of the queue could begin now", labels=["queue"]
    )
    oldest = GaugeMetricFamily(
        "kiln_queue_oldest_age_seconds",
        "Since when the oldest of it is there; 0 where nothing waits",
        labels=["queue"],
    )
    for queue, counts in _waiting():
        found = [one for one in counts if one[0]]
        since = min((begun for _, begun in found if begun), default=None)
        age = (timezone.now() - since).total_seconds() if since else 0.0
        count.add_metric([queue], sum(number for number, _ in found))
        oldest.add_metric([queue], max(0.0, age))
    return count, oldest


Waiting = tuple[int, datetime | None]


def _waiting() -> Iterator[tuple[str, list[Waiting]]]:
    """Yield how many rows of each kind wait, and since when, by queue."""
    yield queue_name(Kind.PREPARE), [_oldest(rows) for rows in backlog.prepare_backlog()]
    yield queue_name(Kind.COMPILE), [_oldest(rows) for rows in backlog.compile_backlog()]
    yield (
        queue_name(Kind.DETECT),
        [_oldest(detection.unchecked_series(), "unchecked_from", aged=False)],
    )
    yield queue_name(Kind.NOTIFY), [_oldest(rows) for rows in backlog.notify_backlog()]
    again = work.due_rows(Remeasurement.objects.all()).order_by()
    for target in sorted(_targets()):
        rows = ledger.ready_tasks(target).order_by()
        own = again.filter(series__target=target)
        yield queue_name(Kind.MEASURE, target), [_oldest(work.due_rows(rows)), _oldest(own)]


def _targets() -> set[str]:
    """Return architectures with waiting measurements or a live worker."""
    open_tasks = TuningTask.objects.filter(state=State.QUEUED).order_by()
    found = set(open_tasks.values_list(ledger.MEASURED_ON, flat=True).distinct())
    again = Remeasurement.objects.filter(state=State.QUEUED).order_by()
    found |= set(again.values_list("series__target", flat=True).distinct())
    prefix = queue_name(Kind.MEASURE, "")
    return found | {
        queue.removeprefix(prefix) for queue in _served_queues() if queue.startswith(prefix)
    }


def _oldest(rows: QuerySet, field: str = "created_at", *, aged: bool = True) -> Waiting:  # type: ignore[type-arg]
    """Return the number of rows and their earliest time; None if the field is no age."""
    if not aged:
        return rows.order_by().count(), None
    found = rows.order_by().aggregate(count=Count("pk"), since=Min(field))
    return found["count"], found["since"]


def _workers() -> Families:
    alive = GaugeMetricFamily(
        "kiln_workers_alive", "Workers that gave a sign of life lately, by queue", labels=["queue"]
    )
    for queue, count in sorted(_served_queues().items()):
        alive.add_metric([queue], count)
    return (alive,)


def _served_queues() -> Counter[str]:
    rows = Worker.objects.only("queues", "seen_at", "stopped_at").filter(stopped_at=None)
    return Counter(queue for row in rows if row.is_alive for queue in row.queues)


def _runs() -> Families:
    return (_by_state("kiln_runs", "Tuning runs by state", TuningRun.objects.all(), State.values),)


def _builds() -> Families:
    return (_by_state("kiln_builds", "Builds by state", Build.objects.all(), State.values),)


def _alerts() -> Families:
    rows = Alert.objects.filter(state__in=OPEN_ALERT_STATES)
    return (_by_state("kiln_alerts_open", "Alerts that are open", rows, OPEN_ALERT_STATES),)


def _deliveries() -> Families:
    states = (DeliveryState.PENDING, DeliveryState.FAILED)
    rows = Delivery.objects.filter(state__in=states)
    return (_by_state("kiln_deliveries", "Notifications that are not delivered", rows, states),)


def _by_state(
    name: str,
    text: str,
    rows: QuerySet,  # type: ignore[type-arg]
    states: Iterable[str],
) -> GaugeMetricFamily:
    """Return the number of rows in each state, 0 included."""
    family = GaugeMetricFamily(name, text, labels=["state"])
    found = dict(rows.order_by().values_list("state").annotate(count=Count("pk")))
    for state in states:
        family.add_metric([str(state)], found.get(state, 0))
    return family


def _points() -> Families:
    family = GaugeMetricFamily(
        "kiln_points_recent",
        f"Points measured in the last hour, by source, of the newest {_NEWEST} that came",
        labels=["source"],
    )
    newest = Datum.objects.aggregate(newest=Max("pk"))["newest"] or 0
    rows = Datum.objects.filter(pk__gt=newest - _NEWEST, measured_at__gt=Now() - _RECENT)
    found = dict(rows.order_by().values_list("source").annotate(count=Count("pk")))
    for source in Datum._meta.get_field("source").choices or ():
        family.add_metric([str(source[0])], found.get(source[0], 0))
    return (family,)


PARTS: dict[str, Callable[[], Families]] = {
    "queues": _queues,
    "workers": _workers,
    "runs": _runs,
    "builds": _builds,
    "alerts": _alerts,
    "deliveries": _deliveries,
    "points": _points,
}
