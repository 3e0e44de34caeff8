"""Settings of one series: the smallest change of interest, muting, when data are missing, and where
its level begins again; tried on its history before they are saved.

Saving and resetting make the detector check the whole series again: changes that are no longer
found are withdrawn, and new ones are handled as if they had just come. A series that is no longer
muted raises an alert for the change that began its current level; earlier changes are history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from operator import attrgetter

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.utils import timezone

from codegen_app.accounts import audit
from codegen_app.tracking.detector.cadence import active_hours, allowed_gap
from codegen_app.tracking.detector.replay import DEFAULT_SETTINGS, DetectedChange
from codegen_app.tracking.models import Baseline, Change, Datum, Revision, Series, SeriesRule
from codegen_app.tracking.rules import resolution
from codegen_app.tracking.rules.settings import RULES_OF_SERIES, series_settings
from codegen_app.tracking.services import detection
from codegen_app.web.row import build_row
from scheduler.errors import UserError
from scheduler.track.units import format_value

MAX_TRIED = 20_000
"""Points that a page tries a threshold on during a request: the latest of a series."""
MAX_GAPS = 10


@dataclass(frozen=True)
class Proposal:
    """``least_effect`` is a fraction of the level, None for the default. Data are missing after
    ``stale_after`` without a new point, None for the series' own rhythm. ``begins`` are times at
    which a level would begin again, besides the existing ones."""

    least_effect: float | None = None
    muted: bool = False
    stale_after: timedelta | None = None
    begins: tuple[datetime, ...] = ()


@dataclass(frozen=True)
class TrialChange:
    """A change under a tried threshold: ``effect`` is gone, new or kept. ``before`` and ``after``
    have their unit; ``ratio`` has its 95% interval, from so many points on each side. ``alert`` is
    the change's alert, ``alert_series`` the number of series in that alert."""

    effect: str
    at: datetime
    revision: str
    before: str
    after: str
    ratio: float
    low: float | None
    high: float | None
    n_before: int
    n_after: int
    worse: bool
    alert: int | None = None
    alert_url: str = ""
    alert_series: int = 0


@dataclass(frozen=True)
class Gap:
    """A time without points, longer than allowed."""

    since: datetime
    until: datetime
    length: timedelta


@dataclass(frozen=True)
class Trial:
    """A proposal's effect on a history: its changes, and the times when data were missing.
    ``allowed`` is how long the series may be silent, None if its rhythm does not say. ``unmuted``:
    it is muted now, and would not be. ``since``: only the latest points, from there on, were tried;
    None: all ``points`` of the trunk."""

    least_effect: float
    muted: bool
    unmuted: bool
    changes: tuple[TrialChange, ...]
    allowed: timedelta | None
    gaps: tuple[Gap, ...]
    more_gaps: int
    unchecked: bool
    points: int
    since: datetime | None

    @property
    def gone(self) -> int:
        """Return the number of changes that would disappear."""
        return sum(change.effect == "gone" for change in self.changes)

    @property
    def new(self) -> int:
        """Return the number of changes that would be added."""
        return sum(change.effect == "new" for change in self.changes)

    @property
    def kept(self) -> int:
        """Return the number of changes that stay."""
        return sum(change.effect == "kept" for change in self.changes)


def dry_run(series: Series, proposed: Proposal, at_most: int | None = None) -> Trial:
    """Return the detector's result on the stored points with the proposal; nothing is written.

    7 queries, and one more for a series of more than ``at_most`` points (by default
    ``MAX_TRIED``), whose latest are tried.
    """
    since, at_most = series.detected_from, at_most or MAX_TRIED
    if series.points - series.branch_points > at_most:
        latest = Datum.objects.trunk().filter(series=series).order_by("-at", "-measured_at", "-id")
        tried = latest.values_list("at", flat=True)[at_most - 1 : at_most].first()
        since = max(filter(None, (since, tried)), default=None)
    baselines = Baseline.objects.filter(series=series, removed_at=None).values_list("at", flat=True)
    begins = [*baselines, *proposed.begins]
    detected = detection.dry_run(series, proposed.least_effect, begins, since)
    data = Datum.objects.filter(series=series, is_trunk=True)
    data = data.filter(at__gte=since) if since else data
    moments = sorted(data.values_list("measured_at", flat=True))
    allowed = proposed.stale_after or allowed_gap(active_hours(moments))
    gaps = [
        Gap(start, end, end - start)
        for start, end in pairwise(moments)
        if allowed is not None and end - start > allowed
    ]
    return Trial(
        least_effect=proposed.least_effect or DEFAULT_SETTINGS.least_effect,
        muted=proposed.muted,
        unmuted=_is_muted(series) and not proposed.muted,
        changes=_changes(series, detected, since),
        allowed=allowed,
        gaps=tuple(gaps[-MAX_GAPS:]),
        more_gaps=max(0, len(gaps) - MAX_GAPS),
        unchecked=series.unchecked_from is not None,
        points=series.points - series.branch_points,
        since=since,
    )


@transaction.atomic
def save(series: Series, proposed: Proposal, reason: str, by: AbstractBaseUser) -> SeriesRule:
    """Save the settings with a reason, and have the series checked again.

    Raises ``UserError`` without a reason.
    """
    settings = {
        "least_effect": proposed.least_effect,
        "muted": proposed.muted,
        "stale_after": proposed.stale_after,
        "reason": _checked_reason(reason),
        "changed_by_id": audit.actor_id(by),
    }
    was_muted = _is_muted(series)
    rule, _ = SeriesRule.objects.update_or_create(series=series, defaults=settings)
    if was_muted and not rule.muted:
        resolution.requeue_last_changes([series.pk])
    detection.recheck(series)
    audit.record(by, "set thresholds", series, rule.reason)
    return rule


@transaction.atomic
def reset(series: Series, reason: str, by: AbstractBaseUser) -> bool:
    """Remove the series' own settings, so that those of the rules, or the defaults, are in effect;
    return False if it has none."""
    reason = _checked_reason(reason)
    was_muted = _is_muted(series)
    deleted, _ = SeriesRule.objects.filter(series=series).delete()
    if deleted:
        if was_muted and not _is_muted(series):
            resolution.requeue_last_changes([series.pk])
        detection.recheck(series)
        audit.record(by, "reset thresholds", series, reason)
    return bool(deleted)


@transaction.atomic
def add_baseline(series: Series, at: datetime, reason: str, by: AbstractBaseUser) -> Baseline:
    """Begin a level at a time: points before it are not compared with points after it.

    Raises ``UserError`` without a reason, for a time outside the history, and for one at which a
    level begins already.
    """
    if series.first_at is None or series.last_at is None:
        raise UserError("a series without points cannot have a baseline")
    if not series.first_at < at <= series.last_at:
        raise UserError(
            f"{at:%Y-%m-%d %H:%M} UTC is outside the history of the series, from "
            f"{series.first_at:%Y-%m-%d %H:%M} to {series.last_at:%Y-%m-%d %H:%M} UTC"
        )
    try:
        with transaction.atomic():
            baseline = Baseline.objects.create(
                series=series,
                at=at,
                reason=_checked_reason(reason),
                created_by_id=audit.actor_id(by),
            )
    except IntegrityError:
        raise UserError(f"a baseline at {at:%Y-%m-%d %H:%M} UTC already exists") from None
    detection.recheck(series)
    audit.record(by, "begin anew", series, baseline.reason)
    return baseline


@transaction.atomic
def remove_baseline(baseline: Baseline, by: AbstractBaseUser) -> bool:
    """Remove a baseline; return False if it was removed already."""
    now = timezone.now()
    if not Baseline.objects.filter(pk=baseline.pk, removed_at=None).update(removed_at=now):
        return False
    detection.recheck(baseline.series)
    audit.record(by, "take back baseline", baseline.series, baseline.reason)
    return True


def _is_muted(series: Series) -> bool:
    rows = Series.objects.select_related(*RULES_OF_SERIES)
    return series_settings(rows.get(pk=series.pk)).muted


def _checked_reason(text: str) -> str:
    if not text.strip():
        raise UserError("enter a reason")
    return text.strip()[:500]


def _changes(
    series: Series, detected: Sequence[DetectedChange], since: datetime | None
) -> tuple[TrialChange, ...]:
    """Return the stored and the detected changes, in the order of the history (2 queries)."""
    standing = Change.objects.filter(series=series, withdrawn_at=None)
    standing = standing.filter(at__gte=since) if since else standing
    stored = list(standing.select_related("revision", "alert").order_by("at", "pk"))
    known = {row.datum_id for row in stored}
    new = {change.datum_id: change for change in detected if change.datum_id not in known}
    names = Revision.objects.in_bulk([0, *(change.revision_id for change in new.values())])
    kept = {change.datum_id for change in detected}
    rows = [
        _trial_change(row, "kept" if row.datum_id in kept else "gone", row.revision, series.unit)
        for row in stored
    ]
    rows += [
        _trial_change(change, "new", names[change.revision_id], series.unit)
        for change in new.values()
    ]
    return tuple(sorted(rows, key=attrgetter("at")))


def _trial_change(
    change: Change | DetectedChange, effect: str, revision: Revision, unit: str
) -> TrialChange:
    alert = change.alert if isinstance(change, Change) else None
    return build_row(
        TrialChange,
        change,
        effect=effect,
        revision=str(revision),
        before=format_value(change.before, unit),
        after=format_value(change.after, unit),
        alert=alert.pk if alert else None,
        alert_url=alert.get_absolute_url() if alert else "",
        alert_series=alert.n_series if alert else 0,
    )
