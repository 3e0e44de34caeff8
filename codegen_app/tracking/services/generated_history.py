"""The generated history as points of series: sample data before anything was measured.

Its series have names that begin with the label, its points a source of their own. It is never
compared with measurements, since no series holds both.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from django.db import transaction

from codegen_app.tracking.models import Datum, Series, Source
from codegen_app.tracking.services import series as storing
from codegen_app.tracking.services.series import StoreSummary
from scheduler.results.points.model import Point, RevisionKey, SeriesKey
from scheduler.track import sides
from scheduler.track.facts import facts_of, point_of
from scheduler.track.generated import GeneratedSeries, generate_history
from scheduler.track.generated_label import LABEL

SERIES = 20
REPOSITORY = LABEL
_START = datetime(2026, 1, 5, 12, tzinfo=UTC)
_INTERVAL = timedelta(days=1)


@transaction.atomic
def store(series: int = SERIES, seed: int = 0) -> StoreSummary:
    """Add a generated history, the same for the same seed; existing series are left as they are."""
    made = {
        key.digest: (key, one)
        for one in generate_history(series, seed)
        for key in [_key(one, seed)]
    }
    known = set(
        Series.objects.filter(digest__in=made, points__gt=0).values_list("digest", flat=True)
    )
    points = [
        point
        for digest, (key, one) in made.items()
        if digest not in known
        for point in _points(key, one, seed)
    ]
    return storing.store(points, Source.GENERATED) if points else StoreSummary(0, 0, 0)


def stored_points(one: GeneratedSeries, seed: int = 0) -> tuple[sides.Point, ...]:
    """Return a generated series' points as stored, in the form of the sides of its changes."""
    row = Series.objects.get(digest=_key(one, seed).digest)
    same = {"target": row.target, "toolchain": row.toolchain, "device": row.device_name}
    data = Datum.objects.filter(series=row).order_by("at", "id")
    return tuple(
        point_of(
            one.conditions.facts,
            value=one.value,
            low=one.low,
            high=one.high,
            n=one.n,
            revision=one.revision.name,
            **same,
        )
        for one in data.select_related("revision", "conditions")
    )


def _key(one: GeneratedSeries, seed: int) -> SeriesKey:
    first = one.points[0]
    return SeriesKey(
        problem=one.name + (f", seed {seed}" if seed else ""),
        sizes={},
        target=first.target,
        device=f"{LABEL}: {first.environment.device}",
        toolchain=first.compiler.name,
        metric="time",
        unit="ns",
    )


def _points(key: SeriesKey, one: GeneratedSeries, seed: int) -> Iterator[Point]:
    repository = REPOSITORY + (f", seed {seed}" if seed else "")
    for place, point in enumerate(one.points):
        at = _START + place * _INTERVAL
        yield Point(
            series=key,
            value=point.value,
            low=point.low,
            high=point.high,
            n=point.n,
            measured_at=at,
            revision=RevisionKey(point.revision, at, repository=repository),
            conditions=facts_of(point),
        )
