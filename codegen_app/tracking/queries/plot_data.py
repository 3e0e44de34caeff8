"""The data that a series' plots are drawn from. Few queries, since any page may show them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from codegen_app.tracking.models import Change, Datum, Series
from codegen_app.tracking.queries.series_summary import (
    PointValue,
    SeriesHead,
    point_value,
    series_head,
)
from codegen_app.web.row import build_row

MAX_POINTS = 400  # more points than a plot can resolve


@dataclass(frozen=True)
class PlotPoint:
    """A point: Unix time in ms, the value and its interval in the series' unit."""

    ms: int
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class PlotChange:
    """A change that later points did not contradict."""

    ms: int
    before: float
    after: float
    low: float | None
    high: float | None
    n_before: int
    n_after: int
    worse: bool
    revision: str

    @property
    def ratio(self) -> float:
        """After / before."""
        return self.after / self.before


@dataclass(frozen=True)
class PlotData:
    """A series with its latest points, oldest first, and the changes among them."""

    head: SeriesHead
    latest: PointValue | None
    points: tuple[PlotPoint, ...]
    steps: tuple[PlotChange, ...]


def plot_data(pk: int, most: int = MAX_POINTS) -> PlotData:
    """Return a series by number with its latest points (3 queries). Raises
    ``Series.DoesNotExist``."""
    series = Series.objects.get(pk=pk)
    rows = Datum.objects.valid().filter(series=pk).select_related("revision").defer("samples")
    found = list(rows.order_by("-at", "-id")[:most])
    points = tuple(PlotPoint(_ms(row.at), row.value, row.low, row.high) for row in reversed(found))
    changes = Change.objects.filter(series=pk, withdrawn_at=None).select_related("revision")
    if found:
        changes = changes.filter(at__gte=found[-1].at)
    return PlotData(
        head=series_head(series),
        latest=point_value(found[0], series.unit) if found else None,
        points=points,
        steps=tuple(
            build_row(PlotChange, change, ms=_ms(change.at), revision=str(change.revision))
            for change in changes.defer("explanation").order_by("at", "pk")
        ),
    )


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
