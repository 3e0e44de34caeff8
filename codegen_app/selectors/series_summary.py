"""What every page says of a series and of its changes, in the same words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from django.db.models import OuterRef, Subquery

from codegen_app.models import Change, Datum, Revision, Series, Source
from codegen_app.models.series import HIGHER
from scheduler.ir.bindings import format_bindings
from scheduler.stats.intervals import bounds_cell, bounds_of, bounds_text
from scheduler.stats.settings import Settings
from scheduler.track.resources import target_of
from scheduler.track.units import format_value

MIN_POINTS = Settings().least_before + 1
"""Fewer points than that say nothing of changes."""

ORIGINS = {
    Source.TUNING: "measured here",
    Source.AGAIN: "measured again here",
    Source.IMPORT: "imported",
    Source.API: "sent",
    Source.GENERATED: "generated",
}


@dataclass(frozen=True)
class SeriesHead:
    """What a series is of. Of its ``points`` so many were ``withdrawn``, and so many others are at
    or below 0 (``not_positive``): these are not compared. ``generated``: nobody measured it;
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
    not_positive: int
    withdrawn: int
    generated: bool
    emulated: bool

    @property
    def name(self) -> str:
        """In one line."""
        sizes = f" at {self.sizes}" if self.sizes else ""
        target = f" ({self.target})" if self.target else ""
        return f"{self.metric} of {self.problem}{sizes} on {self.device}{target}"

    @property
    def is_enough(self) -> bool:
        """Whether there are points enough to find changes."""
        return self.compared >= MIN_POINTS

    @property
    def compared(self) -> int:
        """How many points are compared with others."""
        return self.points - self.not_positive - self.withdrawn

    @property
    def not_compared(self) -> str:
        """Which points are not compared with others, and why; "" where all are."""
        found = []
        if self.not_positive:
            found.append(f"{self.not_positive:,} at or below 0, since changes are ratios")
        if self.withdrawn:
            found.append(f"{self.withdrawn:,} withdrawn")
        return "; ".join(found)

    @property
    def least_points(self) -> int:
        """How many points are enough."""
        return MIN_POINTS


@dataclass(frozen=True)
class PointValue:
    """A figure in the series' unit with its bounds over ``n`` samples, at a revision."""

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
        """Both bounds with their units for a column of intervals, a range with that word; "" where
        none are known, as of a single sample."""
        if not self._has_bounds:
            return ""
        return bounds_cell(self.n, *self._ends)

    @property
    def bounds(self) -> str:
        """Both bounds with what they are, for a sentence; "" where none are known."""
        if not self._has_bounds:
            return ""
        return bounds_text(self.n, *self._ends)

    @property
    def _has_bounds(self) -> bool:
        return self.low is not None and self.high is not None and bool(bounds_of(self.n))

    @property
    def _ends(self) -> tuple[str, str]:
        return format_value(self.low or 0.0, self.unit), format_value(self.high or 0.0, self.unit)


@dataclass(frozen=True)
class ChangeSummary:
    """A change as lists show it. ``ratio`` is after by before, ``low`` and ``high`` its 95%
    interval, of ``n_before`` and ``n_after`` points."""

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
    """No query."""
    gpu = target_of(series.target)
    return SeriesHead(
        id=series.pk,
        url=series.get_absolute_url(),
        problem=series.problem,
        sizes=format_bindings(series.sizes),
        target=series.target,
        device=series.device_name,
        toolchain=series.toolchain,
        metric=series.metric,
        unit=series.unit,
        better=series.better,
        points=series.points,
        not_positive=series.not_positive,
        withdrawn=series.withdrawn,
        generated=series.is_generated,
        emulated=bool(gpu and gpu.emulates),
    )


def point_value(datum: Datum, unit: str) -> PointValue:
    """Of a row with its revision."""
    return PointValue(
        value=datum.value,
        low=datum.low,
        high=datum.high,
        n=datum.n,
        unit=unit,
        revision=str(datum.revision),
        at=datum.at,
        origin=ORIGINS[Source(datum.source)],
    )


def latest_values(series: Iterable[Series]) -> dict[int, PointValue]:
    """The latest valid point of each, by the index of histories (1 query)."""
    units = {one.pk: one.unit for one in series}
    of_each = Datum.objects.valid().filter(series=OuterRef("pk")).order_by("-at", "-id")
    latest = Subquery(of_each.values("pk")[:1])
    keys = Series.objects.filter(pk__in=units).order_by().values(latest=latest)
    rows = Datum.objects.filter(pk__in=keys).select_related("revision").defer("samples")
    return {row.series_id: point_value(row, units[row.series_id]) for row in rows}


def change_summary(change: Change, unit: str) -> ChangeSummary:
    """Of a row with its revisions and its alert."""
    alert: Any = change.alert
    return ChangeSummary(
        id=change.pk,
        url=change.get_absolute_url(),
        at=change.at,
        revision=str(change.revision),
        previous=str(change.previous) if change.previous else "",
        before=change.before,
        after=change.after,
        ratio=change.ratio,
        low=change.low,
        high=change.high,
        n_before=change.n_before,
        n_after=change.n_after,
        worse=change.worse,
        cause=change.cause,
        withdrawn=change.withdrawn_at is not None,
        unit=unit,
        alert=alert.pk if alert else None,
        alert_url=f"/alerts/{alert.pk}" if alert else "",
        alert_state=alert.get_state_display() if alert else "",
    )


def is_worse(series: Series, ratio: float) -> bool:
    """Whether that ratio, later by earlier, is a step in the wrong direction."""
    return ratio < 1 if series.better == HIGHER else ratio > 1


def source_url(revision: Revision) -> str:
    """Where the revision is shown; "" unless its repository is an address of the web."""
    root = _repository_url(revision.repository)
    return f"{root}/commit/{quote(revision.name, safe='')}" if root else ""


def forge_diff_url(before: Revision, after: Revision) -> str:
    """What lies between two revisions of one repository, as forges show it; "" where the repository
    is no address of the web."""
    root = _repository_url(after.repository)
    if not root or before.repository != after.repository or before.name == after.name:
        return ""
    between = f"{quote(before.name, safe='')}...{quote(after.name, safe='')}"
    inner = "/-/compare/" if "gitlab" in root.partition("//")[2].partition("/")[0] else "/compare/"
    return f"{root}{inner}{between}"


def _repository_url(repository: str) -> str:
    """``https://github.com/owner/name`` of an address to read or to clone."""
    text = repository.strip()
    if text.startswith("git@") and ":" in text:
        host, _, path = text.removeprefix("git@").partition(":")
        text = f"https://{host}/{path}"
    if not text.startswith(("https://", "http://")) or any(
        c.isspace() or c in "\"'<>\\?#@" for c in text
    ):
        return ""
    return text.rstrip("/").removesuffix(".git")
