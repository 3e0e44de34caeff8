"""Compare two sides over all their series."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
from django.urls import reverse

from codegen_app.tracking.compare_revisions.queries import (
    StoredPoint,
    StoredSeries,
    StoredSides,
    load_facts,
    load_sides,
)
from codegen_app.tracking.compare_revisions.samples import (
    HIGHER,
    Conditions,
    full_point,
    match_environments,
    side_samples,
)
from codegen_app.tracking.compare_revisions.sides import ComparedSide, resolve_sides
from codegen_app.tracking.models import Source
from scheduler.ir.bindings import format_bindings
from scheduler.track.compare import (
    CompareSettings,
    Comparison,
    MeasuredSeries,
    SeriesRow,
    Status,
    compare,
)
from scheduler.track.report import explain_difference, markdown, table_rows
from scheduler.track.resources import target_of

NO_GRAPH = "no graph"
DEFAULT_SETTINGS = CompareSettings()
_EMULATED = "emulated"
_MOVED = (Status.SLOWER, Status.FASTER)


class Grouping(StrEnum):
    """The grouping of geometric means."""

    GRAPH = "graph"
    DEVICE = "device"
    METRIC = "metric"


#: Statuses as addresses and programs write them.
STATUS_NAMES: Mapping[Status, str] = {status: status.name.lower() for status in Status}
STATUSES: Mapping[str, Status] = {name: status for status, name in STATUS_NAMES.items()}


@dataclass(frozen=True)
class ComparedRow:
    """One series. ``before`` and ``after`` are medians in its unit; ``ratio`` is the slowdown with
    its 95% interval: above 1 is slower, also for metrics where higher is better. ``why`` is the
    cause of a change, or why the result is unknown; ``origin`` is "emulated" or "generated" if the
    series was not measured on a device."""

    series: int
    name: str
    url: str
    problem: str
    sizes: Mapping[str, int]
    target: str
    device: str
    toolchain: str
    metric: str
    unit: str
    better: str
    status: str
    before: float | None
    after: float | None
    ratio: float | None
    low: float | None
    high: float | None
    n_before: int
    n_after: int
    q: float | None
    why: str
    groups: tuple[str, ...]
    origin: str

    @property
    def is_emulated(self) -> bool:
        """Whether the times are those of the CPU emulation."""
        return self.origin == _EMULATED

    @property
    def is_generated(self) -> bool:
        """Whether its points were generated."""
        return self.origin == Source.GENERATED.value


@dataclass(frozen=True)
class GroupRow:
    """The geometric mean of a group's ratios with its 95% interval, over ``n`` series."""

    name: str
    ratio: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class RevisionComparison:
    """The result of a comparison. Rows are built when shown: a cause takes longer than a ratio."""

    before: ComparedSide
    after: ComparedSide
    grouping: Grouping
    comparison: Comparison
    _series: Mapping[str, StoredSeries]
    _sides: tuple[Mapping[str, MeasuredSeries], Mapping[str, MeasuredSeries]]
    _newest: tuple[Mapping[str, StoredPoint], Mapping[str, StoredPoint]]

    @cached_property
    def counts(self) -> dict[str, int]:
        """The number of series of each status, in display order."""
        found = Counter(row.status for row in self.comparison.rows)
        return {name: found[status] for name, status in STATUSES.items()}

    @cached_property
    def groups(self) -> tuple[GroupRow, ...]:
        """The geometric means."""
        return tuple(
            GroupRow(one.name, one.ratio, one.low, one.high, one.n)
            for one in self.comparison.groups
        )

    def select(self, status: str = "", search: str = "", within: str = "") -> list[SeriesRow]:
        """Return rows with this status, with all these words in their names, in this group."""
        words = search.lower().split()
        of = STATUSES.get(status)
        return [
            row
            for row in self.comparison.rows
            if (of is None or row.status is of)
            and all(word in row.series.lower() for word in words)
            and (not within or within in self._groups(row))
        ]

    def shown(self, rows: Sequence[SeriesRow]) -> tuple[ComparedRow, ...]:
        """Return rows with all their details (1 query)."""
        causes = self._causes(rows)
        return tuple(self._compared_row(row, causes.get(row.series, row.reason)) for row in rows)

    def newest_points(self, name: str) -> tuple[int, int]:
        """Return the newest point of a series on each side; the series must be on both."""
        old, new = (side[name].id for side in self._newest)
        return old, new

    def markdown(self, url: str = "") -> str:
        """Return Markdown for a pull request, with a link to the full comparison (1 query)."""
        titles = self.before.title, self.after.title
        causes = self._causes(table_rows(self.comparison))
        text = markdown(self.comparison, titles, lambda row: causes.get(row.series, row.reason))
        return f"{text}\n[All series]({url})\n" if url else text

    def _causes(self, rows: Iterable[SeriesRow]) -> dict[str, str]:
        """Return the causes of the rows that moved, by name (1 query)."""
        moved = [row.series for row in rows if row.status in _MOVED]
        known = load_facts(newest[name].conditions for newest in self._newest for name in moved)
        return {name: explain_difference(*self._full_points(name, known)) for name in moved}

    def _full_points(
        self, name: str, known: Mapping[int, Mapping[str, Any]]
    ) -> Iterator[MeasuredSeries]:
        """Yield both sides of a series with all facts recorded about their newest points."""
        for side, made, newest in zip(
            (self.before, self.after), self._sides, self._newest, strict=True
        ):
            last = newest[name]
            point = full_point(known[last.conditions], self._series[name], last, side.name)
            yield replace(made[name], point=point)

    def _compared_row(self, row: SeriesRow, reason: str) -> ComparedRow:
        series = self._series[row.series]
        old, new = (side.get(row.series) for side in self._sides)
        return ComparedRow(
            series=series.id,
            name=row.series,
            url=reverse("series", args=[series.id]),
            problem=series.problem,
            sizes=series.sizes,
            target=series.target,
            device=series.device,
            toolchain=series.toolchain,
            metric=series.metric,
            unit=series.unit,
            better=series.better,
            status=STATUS_NAMES[row.status],
            before=_median(old, series),
            after=_median(new, series),
            ratio=row.ratio,
            low=row.low,
            high=row.high,
            n_before=old.n if old else 0,
            n_after=new.n if new else 0,
            q=row.q,
            why=reason,
            groups=self._groups(row),
            origin=self._origin(row, series),
        )

    def _groups(self, row: SeriesRow) -> tuple[str, ...]:
        one = self._sides[1].get(row.series) or self._sides[0][row.series]
        return (one.group, *one.groups)

    def _origin(self, row: SeriesRow, series: StoredSeries) -> str:
        newest = [side[row.series] for side in self._newest if row.series in side]
        if any(point.source == Source.GENERATED for point in newest):
            return Source.GENERATED.value
        return _EMULATED if _is_emulated(series.target) else ""


def compare_sides(
    before: str,
    after: str,
    repository: str = "",
    grouping: Grouping = Grouping.GRAPH,
    settings: CompareSettings = DEFAULT_SETTINGS,
) -> RevisionComparison:
    """Compare two sides given as texts (see ``resolve_sides``) in at most 9 queries, however many
    series there are. Raises ``UserError`` if a side cannot be found."""
    old, new = resolve_sides(before, after, repository)
    found = load_sides(old, new)
    names = _names(found.series.values())
    groups = _groupings(found, grouping)
    conditions = Conditions(found.conditions)
    made: tuple[dict[str, MeasuredSeries], dict[str, MeasuredSeries]] = {}, {}
    newest: tuple[dict[str, StoredPoint], dict[str, StoredPoint]] = {}, {}
    for key, series in found.series.items():
        name = names[key]
        both = match_environments(found.before.get(key, ()), found.after.get(key, ()), conditions)
        for place, points in enumerate(both):
            if points:
                last = newest[place][name] = points[0]
                point = conditions.point(series, last) if last.value > 0 else None
                made[place][name] = side_samples(name, groups[key], series, points, point)
    return RevisionComparison(
        before=old,
        after=new,
        grouping=grouping,
        comparison=compare(list(made[0].values()), list(made[1].values()), settings),
        _series={names[key]: series for key, series in found.series.items()},
        _sides=made,
        _newest=newest,
    )


def _names(series: Iterable[StoredSeries]) -> dict[int, str]:
    """Return a name for each series; equal names are distinguished by the series' numbers."""
    names = {one.id: _name(one) for one in series}
    often = Counter(names.values())
    return {key: f"{name} [{key}]" if often[name] > 1 else name for key, name in names.items()}


def _name(series: StoredSeries) -> str:
    sizes = format_bindings(series.sizes)
    of = f"{series.problem} at {sizes}" if sizes else series.problem
    rest = (series.metric, series.target, series.device, series.toolchain)
    return ", ".join((of, *(one for one in rest if one)))


def _groupings(found: StoredSides, grouping: Grouping) -> dict[int, tuple[str, ...]]:
    """Return the groups of each series. Each has one metric: a mean never mixes a time and a
    size."""
    several = len({one.metric for one in found.series.values()}) > 1
    groups: dict[int, tuple[str, ...]] = {}
    for key, one in found.series.items():
        if grouping is Grouping.METRIC:
            groups[key] = (one.metric,)
            continue
        names: Sequence[str] = (one.device,)
        if grouping is Grouping.GRAPH:
            names = found.graphs.get(one.own_problem or 0, ()) or (NO_GRAPH,)
        groups[key] = tuple(f"{name}, {one.metric}" if several else name for name in names)
    return groups


def _median(one: MeasuredSeries | None, series: StoredSeries) -> float | None:
    """Return the median in the series' unit."""
    if one is None:
        return None
    if one.samples.size:
        median = float(np.median(one.samples))
    else:
        assert one.interval is not None
        median = one.interval.median
    return 1 / median if series.better == HIGHER and not one.unusable else median


def _is_emulated(target: str) -> bool:
    known = target_of(target)
    return known is not None and bool(known.emulates)
