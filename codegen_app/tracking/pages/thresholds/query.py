"""The thresholds and baselines of one series."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from codegen_app.tracking.models import Baseline, Change, Series, SeriesRule
from codegen_app.tracking.queries.series_summary import SeriesHead, series_head
from scheduler.stats.settings import Settings

DEFAULT_EFFECT = Settings().least_effect
MAX_BASELINES = 200


@dataclass(frozen=True)
class RuleRow:
    """The threshold rule; ``least_effect`` is a fraction of the level."""

    least_effect: float | None
    muted: bool
    stale_after: timedelta | None
    reason: str
    changed_at: datetime
    changed_by: str


@dataclass(frozen=True)
class BaselineRow:
    """A baseline: the level begins anew; ``removed_at`` is set if it was removed."""

    id: int
    at: datetime
    reason: str
    created_at: datetime
    created_by: str
    removed_at: datetime | None


@dataclass(frozen=True)
class ThresholdsPage:
    """A series with its rule and baselines. ``at`` is the position of the requested change."""

    series: SeriesHead
    default_effect: float
    rule: RuleRow | None
    baselines: tuple[BaselineRow, ...]
    at: datetime | None


def thresholds_page(pk: int, change: int | None = None) -> ThresholdsPage:
    """Return the page of a series by number (4 queries). Raises ``Series.DoesNotExist``."""
    series = Series.objects.get(pk=pk)
    rule = SeriesRule.objects.filter(series=pk).select_related("changed_by").first()
    baselines = Baseline.objects.filter(series=pk).select_related("created_by").order_by("-at")
    at = Change.objects.filter(series=pk, pk=change or 0).values_list("at", flat=True).first()
    return ThresholdsPage(
        series=series_head(series),
        default_effect=DEFAULT_EFFECT,
        rule=_rule(rule) if rule else None,
        baselines=tuple(_baseline(row) for row in baselines[:MAX_BASELINES]),
        at=at,
    )


def _rule(row: SeriesRule) -> RuleRow:
    return RuleRow(
        least_effect=row.least_effect,
        muted=row.muted,
        stale_after=row.stale_after,
        reason=row.reason,
        changed_at=row.changed_at,
        changed_by=row.changed_by.get_username() if row.changed_by else "",
    )


def _baseline(row: Baseline) -> BaselineRow:
    return BaselineRow(
        id=row.pk,
        at=row.at,
        reason=row.reason,
        created_at=row.created_at,
        created_by=row.created_by.get_username() if row.created_by else "",
        removed_at=row.removed_at,
    )
