"""Current values of budgets, and their values over time, from the levels of their series.

A level is the median of its latest points, so that neither noise nor an outlier meets or breaks a
budget. Earlier values come from the levels on both sides of the changes.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import zip_longest

import numpy as np
from django.db import connection
from django.utils import timezone

from codegen_app.tracking.models import VALID, Baseline, Budget, BudgetStatistic, Change, Series
from codegen_app.tracking.models.series import HIGHER
from codegen_app.tracking.queries.series_summary import SeriesHead, series_head
from codegen_app.tracking.rules.matching import matching_sets
from codegen_app.web.row import build_row, username
from scheduler.track.resources import is_emulated
from scheduler.track.units import format_value, unit_factor

MAX_SERIES = 500
"""Series of one budget: the levels of more are not read during a request."""
RECENT = timedelta(days=14)
"""A series without a point for longer is named: its level may be out of date."""
WEEKS = 26
MAX_NAMED = 20
_LEVEL_POINTS = 30

_LEVELS = f"""
SELECT asked.id, level.value FROM unnest(%s::bigint[]) AS asked(id)
CROSS JOIN LATERAL (
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY value) AS value FROM (
        SELECT value FROM codegen_app_datum AS datum
        WHERE series_id = asked.id AND is_trunk AND value > 0 AND value < 'Infinity'
            AND {VALID.format(datum="datum")} AND at >= COALESCE(GREATEST(
                (SELECT max(at) FROM codegen_app_change
                    WHERE series_id = asked.id AND withdrawn_at IS NULL),
                (SELECT max(at) FROM codegen_app_baseline
                    WHERE series_id = asked.id AND removed_at IS NULL)
            ), '-infinity')
        ORDER BY at DESC, id DESC LIMIT {_LEVEL_POINTS}
    ) AS latest
) AS level
WHERE level.value IS NOT NULL
"""  # noqa: S608 - our own names


@dataclass(frozen=True)
class BudgetPoint:
    """The value at a time, of the ``n`` series that had a known level then."""

    at: datetime
    value: float
    n: int


@dataclass(frozen=True)
class BudgetRow:
    """A budget with its value in ``unit``; None for the ``reason``, if it has none. The value is
    met if it is at most the limit, or at least, where ``better`` is "higher".

    ``n_series`` count; ``other_units`` others match and have no comparable unit; ``silent`` are
    counted series without a recent point, ``without_level`` match and have no valid point.
    """

    id: int
    url: str
    name: str
    statistic: str
    statistic_label: str
    series_text: str
    limit: float
    unit: str
    due: date | None
    changed_at: datetime
    changed_by: str
    value: float | None
    reason: str
    better: str
    n_series: int
    devices: tuple[str, ...]
    other_units: int
    without_level: int
    silent: tuple[SeriesHead, ...]
    n_silent: int
    generated: bool
    emulated: bool
    history: tuple[BudgetPoint, ...] = field(repr=False)

    @property
    def met(self) -> bool | None:
        if self.value is None:
            return None
        higher = self.better == HIGHER
        return self.value >= self.limit if higher else self.value <= self.limit

    @property
    def over(self) -> float | None:
        """The value as a fraction beyond the limit, in the wrong direction; negative if met."""
        if self.value is None:
            return None
        ratio = self.value / self.limit
        return 1 - ratio if self.better == HIGHER else ratio - 1

    @property
    def value_text(self) -> str:
        return "" if self.value is None else format_value(self.value, self.unit)

    @property
    def limit_text(self) -> str:
        return format_value(self.limit, self.unit)


@dataclass(frozen=True)
class _Levels:
    """The levels of a series over time, each from its time on; None: unknown. ``current`` is the
    level now. A level times ``factor`` is in the budget's unit."""

    series: Series
    factor: float
    current: float
    times: Sequence[datetime]
    levels: Sequence[float | None]

    def at(self, moment: datetime) -> float | None:
        """Return the level at a time in the budget's unit; None if it is unknown."""
        place = bisect_right(self.times, moment)
        level = self.levels[place - 1] if place else None
        return None if level is None else level * self.factor


def _levels_over_time(
    series: Series,
    current: float,
    changes: Sequence[tuple[datetime, float, float]],
    baselines: Sequence[datetime],
) -> tuple[list[datetime], list[float | None]]:
    """Return the times at which levels begin, and the levels: None before a baseline if no change
    tells it. ``changes`` have their place and the levels on both sides, in order."""
    times: list[datetime] = []
    levels: list[float | None] = []
    if series.first_at is None:
        return times, levels
    begins = [series.first_at, *(at for at in baselines if at > series.first_at)]
    for begin, end in zip_longest(begins, begins[1:]):
        within = [row for row in changes if row[0] >= begin and (end is None or row[0] < end)]
        times += [begin, *(at for at, _, _ in within)]
        levels += [within[0][1] if within else None, *(after for _, _, after in within)]
    levels[-1] = current
    return times, levels


def budget_rows(budgets: Iterable[Budget], now: datetime | None = None) -> tuple[BudgetRow, ...]:
    """Return budgets with their values, of rows with ``changed_by`` (5 queries)."""
    rows = list(budgets)
    sets = matching_sets([row.patterns for row in rows])
    keys = sorted({pk for found in sets if len(found) <= MAX_SERIES for pk in found})
    series = Series.objects.in_bulk(keys)
    with connection.cursor() as cursor:
        cursor.execute(_LEVELS, [keys])
        levels: dict[int, float] = dict(cursor.fetchall())
    changes: dict[int, list[tuple[datetime, float, float]]] = {}
    standing = Change.objects.filter(series__in=keys, withdrawn_at=None).order_by("at", "pk")
    for pk, at, before, after in standing.values_list("series_id", "at", "before", "after"):
        changes.setdefault(pk, []).append((at, before, after))
    baselines: dict[int, list[datetime]] = {}
    begun = Baseline.objects.filter(series__in=keys, removed_at=None).order_by("at")
    for pk, at in begun.values_list("series_id", "at"):
        baselines.setdefault(pk, []).append(at)
    over_time = {
        pk: _levels_over_time(series[pk], level, changes.get(pk, ()), baselines.get(pk, ()))
        for pk, level in levels.items()
        if pk in series
    }
    result = []
    for budget, found in zip(rows, sets, strict=True):
        counted = [
            _Levels(series[pk], factor, levels[pk], *over_time[pk])
            for pk in found
            if pk in over_time and (factor := unit_factor(series[pk].unit, budget.unit)) is not None
        ]
        result.append(_budget_row(budget, found, series, counted, now or timezone.now()))
    return tuple(result)


def _budget_row(
    budget: Budget,
    found: Sequence[int],
    series: Mapping[int, Series],
    counted: Sequence[_Levels],
    now: datetime,
) -> BudgetRow:
    rows = [levels.series for levels in counted]
    known = [series[pk] for pk in found if pk in series]
    comparable = sum(unit_factor(row.unit, budget.unit) is not None for row in known)
    directions = {row.better for row in rows}
    emulated = {is_emulated(target) for target in {row.target for row in rows}}
    reason = ""
    if len(found) > MAX_SERIES:
        reason = f"{len(found)} series match, more than {MAX_SERIES}: narrow the patterns"
    elif not found:
        reason = "no series matches"
    elif not rows:
        reason = f"none of {len(found)} matching series has a level in {budget.unit or 'no unit'}"
    elif len(directions) > 1:
        reason = "lower is better in some of the series, higher in others"
    elif len({row.is_generated for row in rows}) > 1:
        reason = "some of the series were generated, others measured"
    elif len(emulated) > 1:
        reason = "some of the series are of an emulation, others of a device"
    values = [] if reason else [levels.current * levels.factor for levels in counted]
    silent = [row for row in rows if row.last_at is None or row.last_at < now - RECENT]
    heads = [series_head(row) for row in silent[:MAX_NAMED]]
    return build_row(
        BudgetRow,
        budget,
        url=budget.get_absolute_url(),
        statistic_label=budget.get_statistic_display(),
        series_text=str(budget.patterns),
        changed_by=username(budget.changed_by),
        value=_statistic(budget.statistic, values) if values else None,
        reason=reason,
        better=min(directions, default=""),
        n_series=len(rows),
        devices=tuple(sorted({row.device_name for row in rows})),
        other_units=len(known) - comparable,
        without_level=comparable - len(rows),
        silent=tuple(heads),
        n_silent=len(silent),
        generated=any(row.is_generated for row in rows),
        emulated=True in emulated,
        history=() if reason else _history(budget, counted, now),
    )


def _history(budget: Budget, counted: Sequence[_Levels], now: datetime) -> tuple[BudgetPoint, ...]:
    """Return the value at the end of today, and of each of the last weeks: the page stays the same
    for a day."""
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    end = day if day == now else day + timedelta(days=1)
    points = []
    for weeks in range(WEEKS, -1, -1):
        moment = end - timedelta(weeks=weeks)
        levels = [level for row in counted if (level := row.at(moment)) is not None]
        if levels:
            value = _statistic(budget.statistic, levels)
            points.append(BudgetPoint(moment, value, len(levels)))
    return tuple(points)


def _statistic(name: str, values: Sequence[float]) -> float:
    if name == BudgetStatistic.GEOMEAN:
        return math.exp(math.fsum(map(math.log, values)) / len(values))
    shares = {BudgetStatistic.P50: 0.5, BudgetStatistic.P95: 0.95, BudgetStatistic.MAX: 1.0}
    return float(np.quantile(values, shares[BudgetStatistic(name)]))
