"""How alerts stand by their changes as these are now: how many series, the worst, and whether the
series are back."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from codegen_app.models import Alert, Change
from codegen_app.services.detecting.replay import DEFAULTS

_HALFWAY = 0.5
"""Of the way back, in logarithms, that a level has gone at least where its interval is wide."""


class Moved(NamedTuple):
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
    least_effect: float | None

    @property
    def distance(self) -> float:
        """Of the levels, as a logarithm."""
        return math.log(self.after / self.before)


@dataclass(frozen=True)
class Standing:
    """``is_back``: every series that moved has later come back to the level before."""

    n_series: int
    worst: Moved | None
    is_back: bool


_FIELDS = (
    *("pk", "series_id", "alert_id", "at", "before", "after", "low", "high", "worse", "cause"),
    "series__rule__least_effect",
)


def standings(alerts: Collection[Alert]) -> dict[int, Standing]:
    """By the alerts' keys, in two queries."""
    keys = [alert.pk for alert in alerts]
    live = Change.objects.filter(withdrawn_at=None)
    own = [Moved(*row) for row in live.filter(alert__in=keys).values_list(*_FIELDS)]
    of_series = live.filter(series__in={one.series for one in own})
    latest: dict[int, Moved] = {}
    for row in of_series.order_by("series_id", "at", "pk").values_list(*_FIELDS):
        moved = Moved(*row)
        latest[moved.series] = moved
    return {key: _standing(moves, latest) for key, moves in _by_alert(keys, own).items()}


def is_back(change: Moved, latest: Moved) -> bool:
    """Whether a series' present level is no longer worse (of an improvement: better) than the one
    before a change: within the interval of the way back, or within the least effect."""
    if latest.at <= change.at:
        return False
    way = 1.0 if change.distance > 0 else -1.0
    remains = way * math.log(latest.after / change.before)
    least = change.least_effect if change.least_effect is not None else DEFAULTS.least_effect
    if remains <= least:
        return True
    if latest.low is None or latest.high is None:
        return False
    since = math.log(latest.before / change.before)
    nearest = min(way * (math.log(bound) + since) for bound in (latest.low, latest.high))
    return nearest <= 0 and remains <= _HALFWAY * abs(change.distance)


def _by_alert(keys: Iterable[int], moves: Sequence[Moved]) -> dict[int, list[Moved]]:
    result: dict[int, list[Moved]] = {key: [] for key in keys}
    for one in moves:
        if one.alert is not None:
            result[one.alert].append(one)
    return result


def _standing(moves: Sequence[Moved], latest: dict[int, Moved]) -> Standing:
    return Standing(
        n_series=len({one.series for one in moves}),
        worst=max(moves, key=lambda one: (abs(one.distance), -one.pk), default=None),
        is_back=bool(moves) and all(is_back(one, latest[one.series]) for one in moves),
    )
