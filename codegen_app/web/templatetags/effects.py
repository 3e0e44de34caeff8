"""Format the ratio of two levels with its verdict consistently on every page."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from scheduler.track import units
from scheduler.track.effect import Levels, Step, effect_of, format_counts, format_interval

register = template.Library()


@register.filter
def ratio(value: float | None) -> str:
    """Format after / before with its sign; empty for None."""
    return "" if value is None else units.format_ratio(value)


@register.filter
def ratio_interval(levels: Levels | None) -> str:
    """Format the 95% interval of a ratio, or say that there is too little data."""
    return "" if levels is None else format_interval(levels)


@register.filter
def both_counts(levels: Levels | None) -> str:
    """Format the number of values before and after."""
    return "" if levels is None else format_counts(levels)


@register.simple_tag
def moved(change: Step | None) -> SafeString | str:
    """Render after / before with its direction; grey if no effect is shown or there is too little
    data."""
    if change is None:
        return ""
    effect = effect_of(change)
    css = f"{effect} {'up' if change.ratio > 1 else 'down'}" if effect.is_shown else "same"
    interval, counts = format_interval(change), format_counts(change)
    title = f"{effect}: 95% interval of after / before: {interval}; n = {counts}"
    return format_html(
        '<span class="delta {}" title="{}">{}</span>', css, title, ratio(change.ratio)
    )
