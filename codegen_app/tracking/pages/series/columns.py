"""Columns by which the list of series can be sorted and filtered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from codegen_app.tracking.queries.series_summary import ChangeSummary, PointValue, SeriesHead
from codegen_app.web.tables import Column, Kind, Value
from scheduler.stats.intervals import MIN_INTERVAL_SAMPLES
from scheduler.track.evidence import cause_text

_OWN_UNIT = "filters and copies use the base unit of the series: compare values of one metric only"


@dataclass(frozen=True)
class SeriesRow:
    """One series. ``change`` is the latest one that later points did not contradict; ``machine``
    changed, and its points in the series are set aside with its alert."""

    head: SeriesHead
    latest: PointValue | None
    change: ChangeSummary | None
    machine: str = ""
    machine_url: str = ""


def _latest(read: Callable[[PointValue], Value]) -> Callable[[SeriesRow], Value]:
    return lambda row: None if row.latest is None else read(row.latest)


def _change(read: Callable[[ChangeSummary], Value]) -> Callable[[SeriesRow], Value]:
    return lambda row: None if row.change is None else read(row.change)


def _end(read: Callable[[PointValue], Value]) -> Callable[[SeriesRow], Value]:
    """Return a bound of the interval; None for a single sample, as pages show it."""
    return _latest(lambda latest: read(latest) if latest.interval else None)


COLUMNS: tuple[Column[SeriesRow], ...] = (
    Column("problem", "Problem", lambda row: f"{row.head.problem} {row.head.sizes}".rstrip()),
    Column("metric", "Metric", lambda row: row.head.metric),
    Column("device", "Device", lambda row: f"{row.head.device} {row.head.target}".rstrip()),
    Column("target", "Target", lambda row: row.head.target or None, Kind.CODE, shown=False),
    Column("toolchain", "Toolchain", lambda row: row.head.toolchain or None, shown=False),
    Column("latest", "Latest", _latest(lambda latest: latest.value), Kind.RATIO, note=_OWN_UNIT),
    Column(
        "unit",
        "Base unit",
        lambda row: row.head.unit or None,
        note="unit of filters and copied values",
        shown=False,
    ),
    Column(
        "low",
        "Interval",
        _end(lambda latest: latest.low),
        Kind.RATIO,
        note=f"95%; the range if n < {MIN_INTERVAL_SAMPLES}; sorted by the lower end; {_OWN_UNIT}",
    ),
    Column(
        "high",
        "Upper end",
        _end(lambda latest: latest.high),
        Kind.RATIO,
        note=_OWN_UNIT,
        shown=False,
    ),
    Column("n", "n", _latest(lambda latest: latest.n), Kind.WHOLE, note="samples"),
    Column("at", "Last measured", _latest(lambda latest: latest.at), Kind.MOMENT),
    Column("revision", "Revision", _latest(lambda latest: latest.revision), shown=False),
    Column(
        "change",
        "Last change",
        _change(lambda change: change.ratio),
        Kind.RATIO,
        note="level after / level before",
    ),
    Column(
        "suspected",
        "Suspected",
        lambda row: row.head.suspected_ratio,
        Kind.RATIO,
        note="the last values / the level before them; too few values to be a change",
        shown=False,
    ),
    Column("changed", "Changed", _change(lambda change: change.at), Kind.MOMENT, shown=False),
    Column("cause", "Cause", _change(lambda change: cause_text(change.cause) or None), shown=False),
    Column("machine", "Machine", lambda row: row.machine or None, shown=False),
    Column("points", "Points", lambda row: row.head.points, Kind.WHOLE),
)
