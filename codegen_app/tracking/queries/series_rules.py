"""The settings in effect for a series, and what decided them, as pages show them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from codegen_app.tracking.models import PatternRule, Series, SeriesRule
from codegen_app.tracking.rules.settings import RULES_OF_SERIES, series_settings
from codegen_app.web.row import username

SHOWN_RULES = (*RULES_OF_SERIES, "owner_rule__owner")
"""What ``series_rules`` reads, for ``select_related``."""


@dataclass(frozen=True)
class AppliedRule:
    """A rule by patterns; ``url`` is "" if it was removed and workers have not followed yet."""

    text: str
    url: str
    reason: str


@dataclass(frozen=True)
class SeriesRules:
    """``is_own``: the thresholds were set on the series itself; else they are those of
    ``thresholds_rule``, or the defaults if it is None. ``rule_reason`` is the reason of whichever
    applies. ``owner`` is "" if the series has none."""

    least_effect: float | None
    muted: bool
    stale_after: timedelta | None
    is_own: bool
    rule_reason: str
    thresholds_rule: AppliedRule | None
    owner: str
    owner_rule: AppliedRule | None


def series_rules(series: Series) -> SeriesRules:
    """Return what applies to a series; no query if it was read with ``SHOWN_RULES``."""
    settings, owner_rule = series_settings(series), series.owner_rule
    series_rule: SeriesRule | None = getattr(series, "rule", None)
    thresholds_rule = _applied(series.pattern_rule)
    applied = series_rule or thresholds_rule
    return SeriesRules(
        least_effect=settings.least_effect,
        muted=settings.muted,
        stale_after=settings.stale_after,
        is_own=series_rule is not None,
        rule_reason=applied.reason if applied else "",
        thresholds_rule=thresholds_rule,
        owner=username(owner_rule.owner) if owner_rule else "",
        owner_rule=_applied(owner_rule),
    )


def _applied(rule: PatternRule | None) -> AppliedRule | None:
    if rule is None:
        return None
    return AppliedRule(
        str(rule), rule.get_absolute_url() if not rule.removed_at else "", rule.reason
    )
