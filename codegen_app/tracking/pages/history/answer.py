"""Whether a series is slower than a week ago, by how much, since which commit, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from codegen_app.tracking.models import Change, Series
from codegen_app.tracking.queries.revision_links import revision_links
from codegen_app.tracking.queries.series_summary import ChangeSummary, change_summary, is_worse
from codegen_app.web.row import username
from scheduler.track.differences import Aspect
from scheduler.track.effect import effect_of
from scheduler.track.units import format_value, unit_factor

PERIOD = timedelta(days=7)
_NOT_ENVIRONMENT = {Aspect.REVISION, Aspect.SOURCE, Aspect.CODE}


@dataclass(frozen=True)
class Movement:
    """The level now over the level at the begin of the period, with its 95% interval; without one
    if a change in between has none."""

    before: float
    after: float
    low: float | None
    high: float | None
    n_before: int
    n_after: int
    worse: bool
    unit: str

    @property
    def ratio(self) -> float:
        return self.after / self.before

    @property
    def before_text(self) -> str:
        return format_value(self.before, self.unit)

    @property
    def after_text(self) -> str:
        return format_value(self.after, self.unit)

    @property
    def direction(self) -> str:
        """What the series became: slower or faster if it is one of times."""
        effect = effect_of(self)
        if effect.is_shown and unit_factor(self.unit, "s") is not None:
            return "slower" if self.worse else "faster"
        return effect.value


@dataclass(frozen=True)
class Explained:
    """The change that decided, its commit, and its cause: ``why`` is the first reason, and the
    differences that tell most."""

    change: ChangeSummary
    subject: str
    author: str
    commit_url: str
    diff_url: str
    why: tuple[str, ...]
    next_step: str
    assignee: str


@dataclass(frozen=True)
class Answer:
    """What became of a series within the ``PERIOD`` before its latest point, or since its first
    one if that is later: ``begins_at``. ``movement`` is None without a change in it. ``explained``
    is the largest change in the direction of the movement, else the latest change of all."""

    begins_at: datetime
    is_period: bool
    movement: Movement | None
    explained: Explained | None


def history_answer(series: Series, latest_at: datetime, changes: Sequence[Change]) -> Answer:
    """Return the answer from the standing changes of a series, the latest first, with their
    revisions and alerts (1 query)."""
    begins_at = latest_at - PERIOD
    is_period = series.first_at is None or series.first_at <= begins_at
    if not is_period:
        begins_at = series.first_at or begins_at
    recent = [change for change in changes if change.at > begins_at]
    movement = _movement(series, recent) if recent else None
    decisive = changes[:1]
    if movement is not None:
        same = [change for change in recent if (change.ratio > 1) == (movement.ratio > 1)]
        decisive = sorted(same or recent, key=lambda change: -abs(math.log(change.ratio)))[:1]
    explained = [_explained(change, series.unit) for change in decisive]
    return Answer(begins_at, is_period, movement, next(iter(explained), None))


def difference_sentences(change: Change, most: int = 3) -> tuple[str, ...]:
    """Return sentences of the differences at the point of the change; differences that are only
    digests are left out if there are others."""
    found: list[Any] = change.explanation.get("differences", [])
    here = [row for row in found if row.get("here", True)]
    telling = [row for row in here if row.get("aspect") not in _NOT_ENVIRONMENT] or here
    return tuple(str(row.get("sentence", "")) for row in telling[:most])


def _movement(series: Series, changes: Sequence[Change]) -> Movement:
    """Combine changes, the latest first: their errors are independent."""
    first, last = changes[-1], changes[0]
    ratio = last.after / first.before
    low = high = None
    widths = [math.log(row.high / row.low) / 2 for row in changes if row.low and row.high]
    if len(widths) == len(changes):
        reach = math.hypot(*widths)
        low, high = ratio * math.exp(-reach), ratio * math.exp(reach)
    if len(changes) == 1:  # as the change itself shows it
        low, high = last.low, last.high
    return Movement(
        before=first.before,
        after=last.after,
        low=low,
        high=high,
        n_before=first.n_before,
        n_after=last.n_after,
        worse=is_worse(series, ratio),
        unit=series.unit,
    )


def _explained(change: Change, unit: str) -> Explained:
    links = revision_links([change.revision, change.previous])
    return Explained(
        change=change_summary(change, unit),
        subject=change.revision.subject,
        author=change.revision.author,
        commit_url=links.commit(change.revision),
        diff_url=links.diff(change.previous, change.revision) if change.previous else "",
        why=(*map(str, change.explanation.get("reasons", ())[:1]), *difference_sentences(change)),
        next_step=str(change.explanation.get("next_step", "")),
        assignee=username(change.alert.assignee) if change.alert else "",
    )
