"""The settings in effect for a series: its own thresholds if they were set, else those of the
first rule that matches and decides thresholds, else the defaults."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Case, F, Q, When

from codegen_app.tracking.models import PatternRule, Series, SeriesRule

RULES_OF_SERIES = ("rule", "pattern_rule")
"""What ``series_settings`` reads, for ``select_related``."""


@dataclass(frozen=True)
class SeriesSettings:
    """``least_effect`` is a fraction of the level, None for the default; ``stale_after`` is None
    for the rhythm of the series."""

    least_effect: float | None = None
    muted: bool = False
    stale_after: timedelta | None = None


DEFAULTS = SeriesSettings()


def series_settings(series: Series) -> SeriesSettings:
    """Return the settings in effect; no query if the series was read with ``RULES_OF_SERIES``."""
    own: SeriesRule | None = getattr(series, "rule", None)
    return rule_settings(own or series.pattern_rule)


def rule_settings(rule: SeriesRule | PatternRule | None) -> SeriesSettings:
    if rule is None:
        return DEFAULTS
    return SeriesSettings(rule.least_effect, rule.muted, rule.stale_after)


def least_effect_in_effect(series: str) -> Case:
    """Return the minimum effect in effect as an expression of a query: ``series`` is the path to
    the series with its separator (``series__``)."""
    return Case(
        When(
            Q(**{f"{series}rule__isnull": False}),
            then=F(f"{series}rule__least_effect"),
        ),
        default=F(f"{series}pattern_rule__least_effect"),
    )
