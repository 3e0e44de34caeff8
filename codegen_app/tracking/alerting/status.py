"""The status of alerts from their current changes: how many series, the worst, and since when the
series have recovered."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from codegen_app.tracking.alerting.windows import Window, shared_window, window_of
from codegen_app.tracking.detector.replay import DEFAULT_SETTINGS
from codegen_app.tracking.models import Alert, Change
from codegen_app.tracking.rules.settings import least_effect_in_effect

_HALFWAY = 0.5
"""The fraction of the way back, in logarithms, that a level must cover if its interval is wide."""


class LiveChange(NamedTuple):
    """A change that was not withdrawn."""

    pk: int
    series: int
    alert: int | None
    at: datetime
    before: float
    after: float
    low: float | None
    high: float | None
    worse: bool
    cause: str
    good: int | None
    since: datetime | None
    bad: int | None
    until: datetime | None
    revision: int
    least_effect: float | None

    @property
    def distance(self) -> float:
        """The distance between the levels, as a logarithm."""
        return math.log(self.after / self.before)

    @property
    def window(self) -> Window:
        return window_of(self.good, self.since, self.bad, self.until, self.revision, self.at)


@dataclass(frozen=True)
class AlertStatus:
    """``recovered_since``: the place in the history of the point since which every changed series
    is back at the earlier level; None if one is not. ``was_back``: each has been back at some time.
    ``window`` is the part that the windows of all changes share; None without changes."""

    n_series: int
    worst: LiveChange | None
    recovered_since: datetime | None
    was_back: bool
    window: Window | None


_FIELDS = (
    *("pk", "series_id", "alert_id", "at", "before", "after", "low", "high", "worse", "cause"),
    *("good_revision_id", "since", "bad_revision_id", "until", "revision_id"),
    least_effect_in_effect("series__"),
)


def alert_statuses(alerts: Collection[Alert]) -> dict[int, AlertStatus]:
    """Return the statuses by the alerts' keys, in two queries."""
    keys = [alert.pk for alert in alerts]
    live = Change.objects.filter(withdrawn_at=None)
    current = [LiveChange(*row) for row in live.filter(alert__in=keys).values_list(*_FIELDS)]
    of_series = live.filter(series__in={change.series for change in current})
    histories: dict[int, list[LiveChange]] = {}
    for row in of_series.order_by("series_id", "at", "pk").values_list(*_FIELDS):
        change = LiveChange(*row)
        histories.setdefault(change.series, []).append(change)
    by_alert: dict[int | None, list[LiveChange]] = {key: [] for key in keys}
    for change in current:
        by_alert[change.alert].append(change)
    statuses = {}
    for key in keys:
        moves = by_alert[key]
        back = [recovered_since(change, histories[change.series]) for change in moves]
        known = [moment for moment in back if moment is not None]
        statuses[key] = AlertStatus(
            n_series=len({change.series for change in moves}),
            worst=max(moves, key=lambda change: (abs(change.distance), -change.pk), default=None),
            recovered_since=max(known) if known and len(known) == len(back) else None,
            was_back=all(
                any(has_recovered(change, later) for later in histories[change.series])
                for change in moves
            ),
            window=shared_window([change.window for change in moves]),
        )
    return statuses


def recovered_since(change: LiveChange, history: Sequence[LiveChange]) -> datetime | None:
    """Return when the current level of a series, or an earlier one that lasted up to it, returned
    to the level before a change; None if the current level has not. ``history`` has the series'
    changes in order."""
    since = None
    for later in reversed(history):
        if not has_recovered(change, later):
            break
        since = later.at
    return since


def has_recovered(change: LiveChange, latest: LiveChange) -> bool:
    """Return whether a series' level since a later change is no longer worse (for an improvement:
    better) than the level before a change: within the interval of the way back, or the least
    effect."""
    if latest.at <= change.at:
        return False
    way = 1.0 if change.distance > 0 else -1.0
    remains = way * math.log(latest.after / change.before)
    least = (
        change.least_effect if change.least_effect is not None else DEFAULT_SETTINGS.least_effect
    )
    if remains <= least:
        return True
    if latest.low is None or latest.high is None:
        return False
    since = math.log(latest.before / change.before)
    nearest = min(way * (math.log(bound) + since) for bound in (latest.low, latest.high))
    return nearest <= 0 and remains <= _HALFWAY * abs(change.distance)
