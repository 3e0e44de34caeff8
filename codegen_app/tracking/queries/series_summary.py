"""Descriptions of a series and of its changes that all pages share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import OuterRef, Subquery

from codegen_app.tracking.models import AlertKind, Change, Datum, Series, Source
from codegen_app.tracking.models.series import HIGHER
from codegen_app.web.row import build_row
from scheduler.ir.bindings import format_bindings
from scheduler.stats.intervals import bounds_cell, bounds_of, bounds_text
from scheduler.stats.settings import Settings
from scheduler.track.resources import is_emulated
from scheduler.track.units import format_value

MIN_POINTS = Settings().min_before + 1
"""The minimum number of points to find changes."""

ORIGINS = {
    Source.TUNING: "measured here",
    Source.AGAIN: "measured again here",
    Source.IMPORT: "imported",
    Source.API: "sent",
    Source.GENERATED: "generated",
}


@dataclass(frozen=True)
class SeriesHead:
    """A series' identity. Of its ``points``, ``branch_points`` are of other branches than the
    trunk, ``withdrawn`` were withdrawn and ``not_positive`` others are at or below 0: none of these
    are compared. Up to ``rolled_up_to`` days kept their median point, and ``rolled_up`` others were
    deleted. The last ``suspected_n`` values (0: none) are ``suspected_ratio`` times the level
    before them, since ``suspected_from``. ``generated``: its data was generated, not measured;
    ``emulated``: its target's times are those of the CPU emulation."""

    id: int
    url: str
    problem: str
    sizes: str
    target: str
    device: str
    toolchain: str
    metric: str
    unit: str
    better: str
    points: int
    branch_points: int
    not_positive: int
    withdrawn: int
    rolled_up: int
    rolled_up_to: datetime | None
    suspected_n: int
    suspected_ratio: float | None
    suspected_from: datetime | None
    generated: bool
    emulated: bool

    @property
    def name(self) -> str:
        sizes = f" at {self.sizes}" if self.sizes else ""
        target = f" ({self.target})" if self.target else ""
        return f"{self.metric} of {self.problem}{sizes} on {self.device}{target}"

    @property
    def is_enough(self) -> bool:
        return self.compared >= MIN_POINTS

    @property
    def history_points(self) -> int:
        """The number of points of the trunk."""
        return self.points - self.branch_points

    @property
    def compared(self) -> int:
        """The number of points that are compared with others."""
        return self.history_points - self.not_positive - self.withdrawn

    @property
    def not_compared(self) -> str:
        """Which points are not compared with others, and why; "" if all are."""
        found = []
        if self.not_positive:
            found.append(f"{self.not_positive:,} at or below 0, so no ratio can be formed")
        if self.withdrawn:
            found.append(f"{self.withdrawn:,} withdrawn")
        return "; ".join(found)

    @property
    def least_points(self) -> int:
        """The minimum number of points to find changes."""
        return MIN_POINTS


@dataclass(frozen=True)
class PointValue:
    """A value in the series' unit with its bounds over ``n`` samples, at a revision."""

    value: float
    low: float | None
    high: float | None
    n: int
    unit: str
    revision: str
    at: datetime
    origin: str

    @property
    def text(self) -> str:
        return format_value(self.value, self.unit)

    @property
    def interval(self) -> str:
        """Both bounds with their units for a column of intervals, a range labelled as one; "" if
        none are known, as for a single sample."""
        return bounds_cell(self.n, *self._ends) if self._ends else ""

    @property
    def bounds(self) -> str:
        """Both bounds with their label, for a sentence; "" if none are known."""
        return bounds_text(self.n, *self._ends) if self._ends else ""

    @property
    def _ends(self) -> tuple[str, str] | None:
        if self.low is None or self.high is None or not bounds_of(self.n):
            return None
        return format_value(self.low, self.unit), format_value(self.high, self.unit)


@dataclass(frozen=True)
class ChangeSummary:
    """A change as lists show it. ``ratio`` is after / before, ``low`` and ``high`` its 95%
    interval, over ``n_before`` and ``n_after`` points. ``is_machine``: it is of a
    machine with which its points were set aside."""

    id: int
    url: str
    at: datetime
    revision: str
    previous: str
    before: float
    after: float
    ratio: float
    low: float | None
    high: float | None
    n_before: int
    n_after: int
    worse: bool
    cause: str
    withdrawn: bool
    is_machine: bool
    unit: str
    alert: int | None
    alert_url: str
    alert_state: str

    @property
    def before_text(self) -> str:
        return format_value(self.before, self.unit)

    @property
    def after_text(self) -> str:
        return format_value(self.after, self.unit)


def series_head(series: Series) -> SeriesHead:
    """Return the head of a series, without a query."""
    return build_row(
        SeriesHead,
        series,
        url=series.get_absolute_url(),
        sizes=format_bindings(series.sizes),
        device=series.device_name,
        generated=series.is_generated,
        emulated=is_emulated(series.target),
    )


def point_value(datum: Datum, unit: str) -> PointValue:
    """Return the value of a row that has its revision."""
    origin = ORIGINS[Source(datum.source)]
    return build_row(PointValue, datum, unit=unit, revision=str(datum.revision), origin=origin)


def latest_values(series: Iterable[Series]) -> dict[int, PointValue]:
    """Return the latest valid point of each series on the trunk, by the index of histories (1
    query)."""
    units = {row.pk: row.unit for row in series}
    of_each = Datum.objects.trunk().filter(series=OuterRef("pk")).order_by("-at", "-id")
    latest = Subquery(of_each.values("pk")[:1])
    keys = Series.objects.filter(pk__in=units).order_by().values(latest=latest)
    rows = Datum.objects.filter(pk__in=keys).select_related("revision").defer("samples")
    return {row.series_id: point_value(row, units[row.series_id]) for row in rows}


def change_summary(change: Change, unit: str) -> ChangeSummary:
    """Return the summary of a row that has its revisions and its alert."""
    alert: Any = change.alert
    return build_row(
        ChangeSummary,
        change,
        url=change.get_absolute_url(),
        revision=str(change.revision),
        previous=str(change.previous or ""),
        withdrawn=change.withdrawn_at is not None,
        is_machine=bool(alert and alert.kind == AlertKind.MACHINE),
        unit=unit,
        alert=alert.pk if alert else None,
        alert_url=f"/alerts/{alert.pk}" if alert else "",
        alert_state=alert.get_state_display() if alert else "",
    )


def is_worse(series: Series, ratio: float) -> bool:
    """Whether a later / earlier ratio is a step in the wrong direction."""
    return ratio < 1 if series.better == HIGHER else ratio > 1
