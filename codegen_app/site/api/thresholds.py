"""The settings of one series: read, set and reset them."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router

from codegen_app.site.api.checks import (
    READ,
    ROW_REFUSALS,
    TRIAGE,
    check_parameters,
    get_series,
    triager,
)
from codegen_app.tracking.api_alert_schemas import Thresholds, ThresholdsRow
from codegen_app.tracking.api_schemas import Reason
from codegen_app.tracking.detector.replay import DEFAULT_SETTINGS
from codegen_app.tracking.models import PatternRule, Series, SeriesRule
from codegen_app.tracking.queries.series_rules import SHOWN_RULES, series_rules
from codegen_app.tracking.services import thresholds
from scheduler.results.points import fields

router = Router(tags=["thresholds"])


@router.get(
    "/series/{int:pk}/thresholds",
    url_name="api_thresholds",
    auth=READ,
    response={200: ThresholdsRow, **ROW_REFUSALS},
    summary="Get the thresholds of a series",
)
def series_thresholds(request: HttpRequest, pk: int) -> dict[str, Any]:
    """Return the settings in effect for a series: its own, those of a rule by patterns, or the
    defaults."""
    check_parameters(request, ())
    return _thresholds(get_series(pk))


@router.post(
    "/series/{int:pk}/thresholds",
    auth=TRIAGE,
    response={200: ThresholdsRow, **ROW_REFUSALS},
    summary="Set the thresholds of a series",
)
def set_thresholds(request: HttpRequest, pk: int, body: Thresholds) -> dict[str, Any]:
    """Replace the settings of a series; the detector then analyzes the whole series again. The
    owner of the token needs the permission to triage alerts."""
    check_parameters(request, ())
    owner, series = triager(request), get_series(pk)
    proposed = thresholds.Proposal(body.least_effect, body.muted, body.stale_after)
    thresholds.save(series, proposed, fields.as_text(body.reason, "reason", 500), owner)
    return _thresholds(series)


@router.post(
    "/series/{int:pk}/thresholds/reset",
    url_name="api_reset_thresholds",
    auth=TRIAGE,
    response={200: ThresholdsRow, **ROW_REFUSALS},
    summary="Reset the thresholds of a series",
)
def reset_thresholds(request: HttpRequest, pk: int, body: Reason) -> dict[str, Any]:
    """Remove the settings of a series, so that the rules or the defaults apply. Resetting it again
    has no effect."""
    check_parameters(request, ())
    owner, series = triager(request), get_series(pk)
    thresholds.reset(series, fields.as_text(body.reason, "reason", 500), owner)
    return _thresholds(series)


def _thresholds(series: Series) -> dict[str, Any]:
    row = Series.objects.select_related(
        *SHOWN_RULES, "rule__changed_by", "pattern_rule__changed_by"
    ).get(pk=series.pk)
    rules = series_rules(row)
    source: SeriesRule | PatternRule | None = getattr(row, "rule", None) or row.pattern_rule
    applied = rules.thresholds_rule
    return {
        "series": series.pk,
        "is_default": source is None,
        "least_effect": rules.least_effect,
        "default_least_effect": DEFAULT_SETTINGS.least_effect,
        "muted": rules.muted,
        "stale_after": rules.stale_after,
        "reason": rules.rule_reason,
        "rule": applied.text if applied is not None and not rules.is_own else "",
        "owner": rules.owner,
        "changed_at": source.changed_at if source else None,
        "changed_by": source.changed_by.get_username() if source and source.changed_by else None,
    }
