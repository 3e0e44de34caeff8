"""Format alerts and their settings."""

from __future__ import annotations

from datetime import datetime, timedelta

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from codegen_app.tracking.models import AlertKind, AlertState
from codegen_app.tracking.pages.thresholds.form import format_duration
from codegen_app.tracking.queries.alert_rows import UndoableAction

register = template.Library()

_STATES = {
    AlertState.NEW: "warn",
    AlertState.ACKNOWLEDGED: "wait",
    AlertState.INVESTIGATING: "run",
    AlertState.EXPECTED: "off",
    AlertState.FIXED: "ok",
    AlertState.INVALID: "off",
    AlertState.HISTORY: "off",
}
_KINDS = {AlertKind.REGRESSION: "worse", AlertKind.IMPROVEMENT: "better"}


@register.simple_tag
def alert_state(state: str, label: str = "") -> SafeString:
    """Render an alert's state with its colour and glyph."""
    return format_html(
        '<span class="status {}">{}</span>', _STATES.get(AlertState(state), "wait"), label or state
    )


@register.simple_tag
def alert_kind(kind: str, label: str) -> SafeString:
    """Render whether it is a regression, an improvement, or missing data."""
    name = _KINDS.get(AlertKind(kind))
    if name is None:
        return format_html('<span class="status wait">{}</span>', label)
    return format_html('<span class="kind {}">{}</span>', name, label)


@register.filter
def query_of(address: str) -> str:
    """Return the parameters of an address, with their question mark."""
    _, mark, query = address.partition("?")
    return f"{mark}{query}"


@register.filter
def what_it_was(act: UndoableAction) -> str:
    """Describe the action to undo, for a button."""
    state = act.after.get("state")
    what = str(dict(AlertState.choices).get(str(state), act.kind)) if state else act.kind
    return f"{what} of {act.others + 1} alerts" if act.others else f"{what} of #{act.alert}"


@register.filter
def duration(length: timedelta | None) -> str:
    """Format a duration in days, hours or minutes; empty for None."""
    if length is None:
        return ""
    for name, size in (("days", timedelta(days=1)), ("h", timedelta(hours=1))):
        if length >= 2 * size:
            return f"{length / size:.1f}".removesuffix(".0") + f" {name}"
    return f"{length / timedelta(minutes=1):.0f} min"


@register.filter
def as_duration(length: timedelta | str | None) -> str:
    """Format a duration as the form accepts it."""
    return format_duration(length) if isinstance(length, timedelta) else length or ""


@register.filter
def isoformat(moment: datetime | str | None) -> str:
    """Format a moment to the microsecond, for a field; empty for None."""
    return moment.isoformat(" ") if isinstance(moment, datetime) else moment or ""
