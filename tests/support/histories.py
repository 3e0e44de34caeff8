"""Histories for tests of pages: a generated one with the changes that the detector finds in it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.utils import timezone

from codegen_app.tracking.models import Change, Datum, Series
from codegen_app.tracking.services import generated_history
from scheduler.stats import changes
from scheduler.track.causes import explain
from scheduler.track.facts import point_of
from scheduler.track.sides import Point, sides_at


def generated_histories(series: int = 1, seed: int = 0) -> list[Series]:
    """Generated series with their changes and causes, as the detector's pass leaves them."""
    generated_history.store(series, seed)
    rows = list(Series.objects.order_by("pk"))
    for row in rows:
        find_changes(row)
    return rows


def find_changes(series: Series) -> list[Change]:
    """The rows of a series' changes, each with its cause."""
    data = list(
        Datum.objects.filter(series=series)
        .select_related("revision", "conditions")
        .order_by("at", "id")
    )
    level, found = changes.Level(), []
    for datum in data:
        level, detection = changes.append_value(level, datum.value, datum.revision.name)
        if detection.change is not None:
            found.append(detection.change)
    Series.objects.filter(pk=series.pk).update(unchecked_from=None)
    return [_row(series, data, one) for one in found]


def _row(series: Series, data: list[Datum], one: changes.Change) -> Change:
    datum = data[one.index]
    first = max(0, one.index - one.n_before)
    points = tuple(_point(each, series) for each in data[first : one.index + one.n_after])
    why = explain(*sides_at(points, one.index - first))
    half = 3 * abs(one.ratio - 1) / one.errors
    return Change.objects.create(
        series=series,
        datum=datum,
        at=datum.at,
        revision=datum.revision,
        previous=data[one.index - 1].revision,
        before=one.before,
        after=one.after,
        low=one.ratio - half,
        high=one.ratio + half,
        n_before=one.n_before,
        n_after=one.n_after,
        errors=one.errors,
        worse=one.ratio > 1,
        cause=why.cause,
        rule=why.rule,
        explanation=asdict(why),
        explained_at=timezone.now(),
    )


def _point(datum: Datum, series: Series) -> Point:
    of_series: dict[str, Any] = {"target": series.target, "toolchain": series.toolchain}
    return point_of(
        datum.conditions.facts,
        value=datum.value,
        low=datum.low,
        high=datum.high,
        n=datum.n,
        revision=datum.revision.name,
        device=series.device_name,
        **of_series,
    )
