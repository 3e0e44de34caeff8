"""The machine of an alert: what moved, and its points that are set aside."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from codegen_app.tracking.models import Alert, MachineFinding, Withdrawal
from codegen_app.tracking.queries.series_summary import SeriesHead, series_head
from codegen_app.web.row import build_row
from scheduler.track.units import format_value

MAX_POINTS = 50


@dataclass(frozen=True)
class ReadingRow:
    """A reading of the machine that differs in ``n_series`` of its series."""

    name: str
    before: float
    after: float
    n_series: int
    sentence: str


@dataclass(frozen=True)
class SetAsidePoint:
    """A point of the machine that is shown and not compared."""

    id: int
    url: str
    series: SeriesHead
    figure: str
    revision: str
    measured_at: datetime


@dataclass(frozen=True)
class MachineSection:
    """The machine: its ``host``, or the ``device`` model of points without a host. ``ratio`` is the
    geometric mean of after / before over ``n_moved`` series, with its 95% interval. ``points`` are
    the latest of the ``n_points`` that are set aside."""

    host: str
    device: str
    since: datetime
    ratio: float
    low: float
    high: float
    n_moved: int
    n_measured: int
    readings: tuple[ReadingRow, ...]
    n_points: int
    points: tuple[SetAsidePoint, ...]

    @property
    def name(self) -> str:
        return self.host or self.device


def machine_section(alert: Alert) -> MachineSection | None:
    """Return the machine of an alert whose ``finding`` is loaded (2 queries); None if it is about
    something else."""
    finding: MachineFinding | None = getattr(alert, "finding", None)
    if finding is None:
        return None
    standing = Withdrawal.objects.filter(alert=alert, restored_at=None)
    latest = (
        standing.select_related("series", "datum__revision")
        .defer("datum__samples")
        .order_by("-datum__measured_at", "-datum")[:MAX_POINTS]
    )
    return build_row(
        MachineSection,
        finding,
        device=finding.device_name,
        since=alert.at,
        n_moved=alert.n_series,
        readings=tuple(ReadingRow(**reading) for reading in finding.readings),
        n_points=standing.count(),
        points=tuple(
            SetAsidePoint(
                id=row.datum_id,
                url=row.datum.get_absolute_url(),
                series=series_head(row.series),
                figure=format_value(row.datum.value, row.series.unit),
                revision=str(row.datum.revision),
                measured_at=row.datum.measured_at,
            )
            for row in latest
        ),
    )
