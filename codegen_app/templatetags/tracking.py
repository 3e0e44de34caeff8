"""How figures of series and their changes are written, the same on every page."""

from __future__ import annotations

from django import template
from django.template import Context
from django.utils.html import format_html
from django.utils.safestring import SafeString

from codegen_app.selectors.pages.history import MOST_BESIDE, HistoryPage
from codegen_app.selectors.tracked import Moved, SeriesHead
from codegen_app.templatetags.kiln import emulated, generated
from codegen_app.views.page import changed
from scheduler.track import units

register = template.Library()


@register.filter
def figure(value: float | None, unit: str) -> str:
    """With its unit: ``12.34 µs``; nothing for None."""
    return "" if value is None else units.figure(value, unit)


@register.filter
def ratio(value: float | None) -> str:
    """After by before with its sign; nothing for None."""
    return "" if value is None else units.times(value)


@register.filter
def ratio_interval(moved: Moved) -> str:
    """The 95% interval of a change's ratio; says so where none is known."""
    if moved.low is None or moved.high is None:
        return "not known"
    return f"{moved.low:.3f} \N{EN DASH} {moved.high:.3f}"


@register.simple_tag
def moved(change: Moved) -> SafeString:
    """A change's ratio with its direction; greyed where its interval holds 1."""
    css = ("worse" if change.worse else "better") if change.is_shown else "same"
    direction = "up" if change.ratio > 1 else "down"
    what = ("worse" if change.worse else "better") if change.is_shown else "no difference is shown"
    title = (
        f"{what}: {change.before_text} \N{RIGHTWARDS ARROW} {change.after_text}; 95% interval of"
        f" after / before: {ratio_interval(change)}; n = {change.n_before} and {change.n_after}"
    )
    text = ratio(change.ratio)
    return format_html(
        '<span class="delta {} {}" title="{}">{}</span>', css, direction, title, text
    )


@register.simple_tag
def series_tags(head: SeriesHead) -> SafeString:
    """What a series' figures are where they are no measurements of a device; a space behind it."""
    tags = (generated(head.generated), emulated(head.emulated))
    return SafeString("".join(f"{tag} " for tag in tags if tag))


@register.simple_tag(takes_context=True)
def with_beside(context: Context, page: HistoryPage, key: int) -> str:
    """The history's address with one more series beside it."""
    keys = [one.head.id for one in page.beside] + [key]
    return changed(context["request"], **{"with": ",".join(map(str, keys[-MOST_BESIDE:]))})


@register.simple_tag(takes_context=True)
def without_beside(context: Context, page: HistoryPage, key: int) -> str:
    """The history's address without one of the series beside it."""
    keys = [one.head.id for one in page.beside if one.head.id != key]
    return changed(context["request"], **{"with": ",".join(map(str, keys))})
