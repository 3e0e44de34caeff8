"""The thresholds and baselines of one series."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from codegen_app.tracking.models import Baseline, Change, Series, SeriesRule
from codegen_app.tracking.queries.series_rules import SHOWN_RULES, SeriesRules, series_rules
from codegen_app.tracking.queries.series_summary import SeriesHead, series_head
from codegen_app.web.row import build_row, username
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
    """A baseline: the level begins again; ``removed_at`` is set if it was removed."""

    id: int
    at: datetime
    reason: str
    created_at: datetime
    created_by: str
    removed_at: datetime | None


@dataclass(frozen=True)
class ThresholdsPage:
    """A series with its own thresholds (``rule``), the settings in effect (``rules``), and its
    baselines. ``at`` is the position of the requested change."""

    series: SeriesHead
    default_effect: float
    rule: RuleRow | None
    rules: SeriesRules
    baselines: tuple[BaselineRow, ...]
    at: datetime | None


def thresholds_page(pk: int, change: int | None = None) -> ThresholdsPage:
    """Return the page of a series by number (4 queries). Raises ``Series.DoesNotExist``."""
    series = Series.objects.select_related(*SHOWN_RULES).get(pk=pk)
    rule = SeriesRule.objects.filter(series=pk).select_related("changed_by").first()
    baselines = Baseline.objects.filter(series=pk).select_related("created_by").order_by("-at")
    at = Change.objects.filter(series=pk, pk=change or 0).values_list("at", flat=True).first()
    return ThresholdsPage(
        series=series_head(series),
        default_effect=DEFAULT_EFFECT,
        rule=build_row(RuleRow, rule, changed_by=username(rule.changed_by)) if rule else None,
        rules=series_rules(series),
        baselines=tuple(
            build_row(BaselineRow, row, created_by=username(row.created_by))
            for row in baselines[:MAX_BASELINES]
        ),
        at=at,
    )
