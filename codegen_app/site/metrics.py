"""The site's state from the rows, as Prometheus metric families: gauges, read at each scrape.

Each part has its own short limit in the database. A part that takes longer is left out, and
``kiln_metrics_part_ok`` is 0 for it: a missing figure is not zero.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from functools import partial

from django.db import DatabaseError, connection, transaction
from django.db.models import Count, Max, Min, QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from prometheus_client import generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from codegen_app.kernels.models import Build
from codegen_app.site import queued_work
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
            families: Families = ()
            try:
                with transaction.atomic():
                    with connection.cursor() as cursor:
                        cursor.execute(f"SET LOCAL statement_timeout = {LIMIT_MS}")
                    families = list(part())
                ok.add_metric([name], 1.0)
            except DatabaseError as error:
                log.warning("metrics leave out %s: %s", name, one_line(str(error)))
                families = ()  # also where the end of the transaction failed
                ok.add_metric([name], 0.0)
            yield from families
        yield ok


def queue_families() -> Families:
    """Return the length of each queue, and the age of its oldest row."""
    count = GaugeMetricFamily(
        "kiln_queue_waiting", "What a worker of the queue could begin now", labels=["queue"]
    )
    oldest = GaugeMetricFamily(
        "kiln_queue_oldest_age_seconds",
        "Since when the oldest of it is there; 0 where nothing waits",
        labels=["queue"],
    )
    for queue, lengths in _queue_lengths():
        since = min((created for number, created in lengths if number and created), default=None)
        age = (timezone.now() - since).total_seconds() if since else 0.0
        count.add_metric([queue], sum(number for number, _ in lengths))
        oldest.add_metric([queue], max(0.0, age))
    return count, oldest


Length = tuple[int, datetime | None]  # the number of rows, and when the oldest was created


def _queue_lengths() -> Iterator[tuple[str, list[Length]]]:
    """Yield each queue with the lengths of its parts."""
    for kind in (Kind.PREPARE, Kind.COMPILE, Kind.BISECT):
        yield queue_name(kind), [_length(rows) for rows in queued_work.due_rows(kind)]
    unchecked = detection.unchecked_series().order_by().count()  # its times are no ages
    yield queue_name(Kind.DETECT), [(unchecked, None)]
    deliveries = queued_work.due_rows(Kind.NOTIFY)
    yield queue_name(Kind.NOTIFY), [_length(rows) for rows in deliveries]
    prefix = queue_name(Kind.MEASURE, "")
    tasks = TuningTask.objects.filter(state=State.QUEUED).order_by()
    queued = Remeasurement.objects.filter(state=State.QUEUED).order_by()
    targets = {
        *tasks.values_list(ledger.MEASURED_ON, flat=True).distinct(),
        *queued.values_list("series__target", flat=True).distinct(),
        *(name.removeprefix(prefix) for name in _served_queues() if name.startswith(prefix)),
    }
    for target in sorted(targets):
        ready = work.due_rows(ledger.ready_tasks(target))
        remeasurements = work.due_rows(Remeasurement.objects.filter(series__target=target))
        yield queue_name(Kind.MEASURE, target), [_length(ready), _length(remeasurements)]


def _length(rows: QuerySet) -> Length:  # type: ignore[type-arg]
    queue = rows.order_by().aggregate(count=Count("pk"), since=Min("created_at"))
    return queue["count"], queue["since"]


def worker_families() -> Families:
    """Return the live workers by queue."""
    alive = GaugeMetricFamily(
        "kiln_workers_alive", "Workers that gave a sign of life lately, by queue", labels=["queue"]
    )
    for queue, count in sorted(_served_queues().items()):
        alive.add_metric([queue], count)
    return (alive,)


def _served_queues() -> Counter[str]:
    rows = Worker.objects.only("queues", "seen_at", "stopped_at").filter(stopped_at=None)
    return Counter(queue for row in rows if row.is_alive for queue in row.queues)


def _by_state(
    name: str,
    text: str,
    rows: QuerySet,  # type: ignore[type-arg]
    states: Iterable[str],
) -> Families:
    """Return the number of rows in each state, 0 included."""
    family = GaugeMetricFamily(name, text, labels=["state"])
    counts = dict(rows.order_by().values_list("state").annotate(count=Count("pk")))
    for state in states:
        family.add_metric([str(state)], counts.get(state, 0))
    return (family,)


def point_families() -> Families:
    """Return the recent points by source."""
    family = GaugeMetricFamily(
        "kiln_points_recent",
        f"Points measured in the last hour, by source, of the newest {_NEWEST} that came",
        labels=["source"],
    )
    newest = Datum.objects.aggregate(newest=Max("pk"))["newest"] or 0
    rows = Datum.objects.filter(pk__gt=newest - _NEWEST, measured_at__gt=Now() - _RECENT)
    counts = dict(rows.order_by().values_list("source").annotate(count=Count("pk")))
    for source in Datum._meta.get_field("source").choices or ():
        family.add_metric([str(source[0])], counts.get(source[0], 0))
    return (family,)


_UNDELIVERED = (DeliveryState.PENDING, DeliveryState.FAILED)
PARTS: dict[str, Callable[[], Families]] = {
    "queues": queue_families,
    "workers": worker_families,
    "runs": partial(
        _by_state, "kiln_runs", "Tuning runs by state", TuningRun.objects.all(), State.values
    ),
    "builds": partial(
        _by_state, "kiln_builds", "Builds by state", Build.objects.all(), State.values
    ),
    "alerts": partial(
        _by_state,
        "kiln_alerts_open",
        "Alerts that are open",
        Alert.objects.filter(state__in=OPEN_ALERT_STATES),
        OPEN_ALERT_STATES,
    ),
    "deliveries": partial(
        _by_state,
        "kiln_deliveries",
        "Notifications that are not delivered",
        Delivery.objects.filter(state__in=_UNDELIVERED),
        _UNDELIVERED,
    ),
    "points": point_families,
}
