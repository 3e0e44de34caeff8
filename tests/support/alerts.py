"""Series, changes and alerts for tests, as the detector writes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from codegen_app.tracking.models import Alert, AlertKind, Change, Datum, Revision, Series, Source
from codegen_app.tracking.services import point_storage
from scheduler.results.points.model import Point, RevisionKey, SeriesKey

_numbers = count()
START = datetime(2026, 1, 1, tzinfo=UTC)


def series(values: list[float] | None = None, **key: Any) -> Series:
    """A series with a point a day, each of a revision of its own."""
    number = next(_numbers)
    given = {"problem": f"matmul {number}", "sizes": {"m": 4096, "n": 4096}, "target": "sm_90a"}
    given |= {"device": "NVIDIA H200", "toolchain": "cuda", "metric": "time", "unit": "us"}
    of = SeriesKey(**(given | key))
    points = [
        Point(of, value, START + timedelta(days=day), RevisionKey(f"r{day}"), n=20)
        for day, value in enumerate(values or [100.0])
    ]
    point_storage.store(points, Source.API)
    return Series.objects.get(digest=of.digest)


def alert(kind: AlertKind = AlertKind.REGRESSION, **fields: Any) -> Alert:
    """An alert without changes, of a revision of its own."""
    revision = Revision.objects.create(name=f"{next(_numbers):040x}", at=START)
    defaults = {"kind": kind, "revision": revision, "at": START, "n_series": 1}
    return Alert.objects.create(**defaults | fields)


def missing(of: Series | None = None) -> Alert:
    """A series whose points stopped coming."""
    return Alert.objects.create(kind=AlertKind.MISSING, series=of or series(), at=START, n_series=1)


def change(of: Alert | None, before: float = 100.0, after: float = 112.0, **fields: Any) -> Change:
    """A change of a series of its own (or ``series``) at its last point."""
    row = fields.pop("series", None) or series()
    datum = Datum.objects.filter(series=row).latest("at")
    ratio = after / before
    made = Change.objects.create(
        **{
            "series": row,
            "datum": datum,
            "at": datum.at,
            "revision": datum.revision,
            "before": before,
            "after": after,
            "low": ratio * 0.98,
            "high": ratio * 1.02,
            "n_before": 60,
            "n_after": 12,
            "errors": 9.0,
            "worse": after > before,
            "alert": of,
            **fields,
        }
    )
    if of is not None:
        worst = of.changes.filter(withdrawn_at=None).order_by("-after")[0]
        of.n_series = of.changes.filter(withdrawn_at=None).values("series").distinct().count()
        of.worst_ratio, of.cause = worst.ratio, worst.cause
        of.save()
    return made
