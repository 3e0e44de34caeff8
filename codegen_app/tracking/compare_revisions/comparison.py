"""Compare two sides over all their series."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

from django.urls import reverse

from codegen_app.tracking.compare_revisions.histories import (
    NewValues,
    load_histories,
    needs_history,
)
from codegen_app.tracking.compare_revisions.queries import (
    StoredPoint,
    StoredSeries,
    StoredSides,
    load_facts,
    load_sides,
)
from codegen_app.tracking.compare_revisions.rows import (
    EMULATED,
    ComparedRow,
    RerunRow,
    row_figures,
)
from codegen_app.tracking.compare_revisions.samples import (
    HIGHER,
    NO_SAMPLES,
    Conditions,
    full_point,
    match_environments,
    side_samples,
)
from codegen_app.tracking.compare_revisions.sides import ComparedSide, resolve_sides
from codegen_app.tracking.models import Source
from codegen_app.web.row import build_row
from scheduler.ir.bindings import format_bindings
from scheduler.stats.prediction import History
from scheduler.track.compare import Comparison, compare
from scheduler.track.compared_series import (
    CompareSettings,
    MeasuredSeries,
    SeriesRow,
    SideName,
    Status,
)
from scheduler.track.report import explain_difference, markdown, stated_reason, table_rows
from scheduler.track.resources import is_emulated

MAX_RERUNS = 1_000
NO_GRAPH = "no graph"
DEFAULT_SETTINGS = CompareSettings()
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

    def select(self, status: str = "", search: str = "", within: str = "") -> list[SeriesRow]:
        """Return rows with this status, with all these words in their names, in this group."""
        words = search.lower().split()
        selected = STATUSES.get(status)
        return [
            row
            for row in self.comparison.rows
            if (selected is None or row.status is selected)
            and all(word in row.series.lower() for word in words)
            and (not within or within in self._groups(row))
        ]

    def shown(self, rows: Sequence[SeriesRow]) -> tuple[ComparedRow, ...]:
        """Return rows with all their details (1 query)."""
        causes = self._causes(rows)
        found = []
        for row in rows:
            series = self._series[row.series]
            before, after = (side.get(row.series) for side in self._sides)
            origin = EMULATED if is_emulated(series.target) else ""
            if any(
                side[row.series].source == Source.GENERATED
                for side in self._newest
                if row.series in side
            ):
                origin = Source.GENERATED.value
            found.append(
                build_row(
                    ComparedRow,
                    series,
                    series=series.id,
                    name=row.series,
                    url=reverse("series", args=[series.id]),
                    status=STATUS_NAMES[row.status],
                    **row_figures(row, before, after, series.better == HIGHER),
                    method=row.method.value,
                    rerun=row.rerun,
                    rerun_side=row.rerun_side.value,
                    why=causes.get(row.series, stated_reason(row)),
                    groups=self._groups(row),
                    origin=origin,
                )
            )
        return tuple(found)

    def newest_points(self, name: str) -> tuple[int, int]:
        """Return the newest point of a series on each side; the series must be on both."""
        old, new = (side[name].id for side in self._newest)
        return old, new

    def reruns(self, most: int = MAX_RERUNS) -> tuple[RerunRow, ...]:
        """Return the uncertain series to measure again, with the revision of the side."""
        rows = [row for row in self.comparison.rows if row.rerun][:most]
        sides = {SideName.BEFORE: self.before, SideName.AFTER: self.after}
        return tuple(
            build_row(
                RerunRow,
                self._series[row.series],
                series=self._series[row.series].id,
                device_name=self._series[row.series].device,
                revision=sides[row.rerun_side].name,
                branch=next(iter(sides[row.rerun_side].branches), ""),
                repository=sides[row.rerun_side].repository,
                side=row.rerun_side.value,
                runs=row.rerun,
                why=row.reason,
            )
            for row in rows
        )

    def markdown(self, url: str = "") -> str:
        """Return Markdown for a pull request, with a link to the full comparison (1 query)."""
        titles = self.before.title, self.after.title
        causes = self._causes(table_rows(self.comparison))
        text = markdown(
            self.comparison, titles, lambda row: causes.get(row.series, stated_reason(row))
        )
        return f"{text}\n[All series]({url})\n" if url else text

    def _causes(self, rows: Iterable[SeriesRow]) -> dict[str, str]:
        """Return the causes of the rows that moved, by name, from all facts recorded about the
        newest points of both sides (1 query)."""
        moved = [row.series for row in rows if row.status in _MOVED]
        facts = load_facts(newest[name].conditions for newest in self._newest for name in moved)
        causes = {}
        for name in moved:
            sides = []
            for side, measured, newest in zip(
                (self.before, self.after), self._sides, self._newest, strict=True
            ):
                last = newest[name]
                point = full_point(facts[last.conditions], self._series[name], last, side.name)
                sides.append(replace(measured[name], point=point))
            causes[name] = explain_difference(*sides)
        return causes

    def _groups(self, row: SeriesRow) -> tuple[str, ...]:
        measured = self._sides[1].get(row.series) or self._sides[0][row.series]
        return (measured.group, *measured.groups)


def compare_sides(
    before: str,
    after: str,
    repository: str = "",
    grouping: Grouping = Grouping.GRAPH,
    settings: CompareSettings = DEFAULT_SETTINGS,
) -> RevisionComparison:
    """Compare two sides given as texts (see ``resolve_sides``) in at most 9 queries, and 4 more for
    the histories of series with few samples, however many series there are. Raises ``UserError`` if
    a side cannot be found."""
    old, new = resolve_sides(before, after, repository)
    found = load_sides(old, new)
    names = _names(found.series.values())
    groups = _groupings(found, grouping)
    conditions = Conditions(found.conditions)
    measured: tuple[dict[str, MeasuredSeries], dict[str, MeasuredSeries]] = {}, {}
    newest: tuple[dict[str, StoredPoint], dict[str, StoredPoint]] = {}, {}
    few_samples: list[NewValues] = []
    for key, series in found.series.items():
        name = names[key]
        both = match_environments(found.before.get(key, ()), found.after.get(key, ()), conditions)
        for place, points in enumerate(both):
            if points:
                last = newest[place][name] = points[0]
                point = conditions.point(series, last) if last.value > 0 else None
                measured[place][name] = side_samples(name, groups[key], series, points, point)
        sides = [side[name] for side in measured if name in side]
        if old.is_trunk and needs_history(sides):
            few_samples += _new_values(series, both, old)
    histories: dict[str, History] = {}
    for key, past in load_histories(few_samples, new.keys, conditions).items():
        name, series = names[key], found.series[key]
        histories[name] = past.history
        if past.replaces_before:
            newest[0][name] = past.newest
            point = conditions.point(series, past.newest)
            measured[0][name] = side_samples(name, groups[key], series, [past.newest], point)
    for key, series in found.series.items():
        name = names[key]
        for side, rows in zip((old, new), measured, strict=True):
            if name not in rows and (reason := _rolled_up(series, side)):
                group, *others = groups[key]
                rows[name] = MeasuredSeries(
                    name, group, NO_SAMPLES, groups=tuple(others), unusable=reason
                )
    return RevisionComparison(
        before=old,
        after=new,
        grouping=grouping,
        comparison=compare(
            list(measured[0].values()), list(measured[1].values()), settings, histories
        ),
        _series={names[key]: series for key, series in found.series.items()},
        _sides=measured,
        _newest=newest,
    )


def _rolled_up(series: StoredSeries, side: ComparedSide) -> str:
    """Return why a series without points on a side may have had some; "" if it had none."""
    if side.at is None or series.first_at is None or series.rolled_up_to is None:
        return ""
    if not series.first_at <= side.at <= series.rolled_up_to:
        return ""
    return f"one point a day is left up to {series.rolled_up_to:%Y-%m-%d}, none of {side.title}"


def _new_values(
    series: StoredSeries,
    both: tuple[Sequence[StoredPoint], Sequence[StoredPoint]],
    before: ComparedSide,
) -> list[NewValues]:
    """Return the new values of a series; none without a point on the side after, or if the place of
    the side before in the history is unknown."""
    moments = [point.at for point in both[0]]
    if before.at is not None:
        moments.append(before.at)
    if not both[1] or not moments:
        return []
    old = both[0][0] if both[0] else None
    return [NewValues(series.id, series.id, series.better, old, both[1][0], max(moments))]


def _names(series: Iterable[StoredSeries]) -> dict[int, str]:
    """Return a name for each series; equal names are distinguished by the series' numbers."""
    names = {}
    for row in series:
        sizes = format_bindings(row.sizes)
        problem = f"{row.problem} at {sizes}" if sizes else row.problem
        parts = (problem, row.metric, row.target, row.device, row.toolchain)
        names[row.id] = ", ".join(filter(None, parts))
    counts = Counter(names.values())
    return {key: f"{name} [{key}]" if counts[name] > 1 else name for key, name in names.items()}


def _groupings(found: StoredSides, grouping: Grouping) -> dict[int, tuple[str, ...]]:
    """Return the groups of each series. Each has one metric: a mean never mixes a time and a
    size."""
    is_mixed = len({series.metric for series in found.series.values()}) > 1
    groups: dict[int, tuple[str, ...]] = {}
    for key, series in found.series.items():
        if grouping is Grouping.METRIC:
            groups[key] = (series.metric,)
            continue
        names: Sequence[str] = (series.device,)
        if grouping is Grouping.GRAPH:
            names = found.graphs.get(series.own_problem or 0, ()) or (NO_GRAPH,)
        groups[key] = tuple(f"{name}, {series.metric}" if is_mixed else name for name in names)
    return groups
