"""The generated history as points of series: sample data before anything was measured.

Its series have names that begin with the label, its points a source of their own. It is never
compared with measurements, since no series holds both.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.db import transaction

from codegen_app.tracking.models import Series, Source
from codegen_app.tracking.services import point_storage
from codegen_app.tracking.services.point_storage import StoreSummary
from scheduler.results.points.model import Point, RevisionKey, SeriesKey
from scheduler.track.facts import facts_of
from scheduler.track.generated import GeneratedSeries, generate_history
from scheduler.track.generated_label import LABEL

SERIES = 20
REPOSITORY = LABEL
_START = datetime(2026, 1, 5, 12, tzinfo=UTC)
_INTERVAL = timedelta(days=1)


@transaction.atomic
def store(series: int = SERIES, seed: int = 0) -> StoreSummary:
    """Add a generated history, the same for the same seed; existing series are left as they are."""
    histories = [(_key(history, seed), history) for history in generate_history(series, seed)]
    digests = [key.digest for key, _ in histories]
    stored = Series.objects.filter(digest__in=digests, points__gt=0)
    known = set(stored.values_list("digest", flat=True))
    repository = REPOSITORY + (f", seed {seed}" if seed else "")
    points: list[Point] = []
    for key, history in histories:
        if key.digest in known:
            continue
        for place, point in enumerate(history.points):
            at = _START + place * _INTERVAL
            points.append(
                Point(
                    series=key,
                    value=point.value,
                    low=point.low,
                    high=point.high,
                    n=point.n,
                    measured_at=at,
                    revision=RevisionKey(point.revision, at, repository=repository),
                    conditions=facts_of(point),
                )
            )
    return point_storage.store(points, Source.GENERATED) if points else StoreSummary(0, 0, 0)


def _key(history: GeneratedSeries, seed: int) -> SeriesKey:
    first = history.points[0]
    return SeriesKey(
        problem=history.name + (f", seed {seed}" if seed else ""),
        sizes={},
        target=first.target,
        device=f"{LABEL}: {first.environment.device}",
        toolchain=first.compiler.name,
        metric="time",
        unit="ns",
    )
