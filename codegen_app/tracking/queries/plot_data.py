"""The data that a series' plots are drawn from. Few queries, since any page may show them."""

from __future__ import annotations

from dataclasses import dataclass

from codegen_app.tracking.models import Change, Datum, Series
from codegen_app.tracking.queries.series_summary import (
    ChangeSummary,
    PointValue,
    SeriesHead,
    change_summary,
    point_value,
    series_head,
)

MAX_POINTS = 400  # more points than a plot can resolve


@dataclass(frozen=True)
class PlotData:
    """A series with its latest points, oldest first, and the changes among them that later points
    did not contradict."""

    head: SeriesHead
    points: tuple[PointValue, ...]
    steps: tuple[ChangeSummary, ...]


def plot_data(pk: int, most: int = MAX_POINTS) -> PlotData:
    """Return a series by number with its latest points (3 queries). Raises
    ``Series.DoesNotExist``."""
    series = Series.objects.get(pk=pk)
    rows = Datum.objects.valid().filter(series=pk).select_related("revision").defer("samples")
    points = [point_value(row, series.unit) for row in rows.order_by("-at", "-id")[:most]]
    changes = Change.objects.filter(series=pk, withdrawn_at=None)
    changes = changes.select_related("revision", "previous", "alert").defer("explanation")
    if points:
        changes = changes.filter(at__gte=points[-1].at)
    return PlotData(
        head=series_head(series),
        points=tuple(reversed(points)),
        steps=tuple(change_summary(row, series.unit) for row in changes.order_by("at", "pk")),
    )
