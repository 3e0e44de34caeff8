"""Format values of series and their changes consistently on every page."""

from __future__ import annotations

from django import template
from django.template import Context
from django.utils.html import format_html
from django.utils.safestring import SafeString

from codegen_app.tracking.pages.history.query import MAX_BESIDE, HistoryPage
from codegen_app.tracking.pages.team import chart
from codegen_app.tracking.queries.budget_values import BudgetRow
from codegen_app.tracking.queries.series_summary import SeriesHead
from codegen_app.web.addresses import replace_query
from codegen_app.web.templatetags.effects import both_counts, moved, ratio, ratio_interval
from codegen_app.web.templatetags.kiln import emulated, generated
from scheduler.track import units
from scheduler.track.evidence import cause_text

register = template.Library()
register.filter("cause_text", cause_text)
register.filter(ratio)
register.filter(ratio_interval)
register.filter(both_counts)
register.simple_tag(moved)


@register.filter
def figure(value: float | None, unit: str) -> str:
    """Format a value with its unit: ``12.34 µs``; empty for None."""
    return "" if value is None else units.format_value(value, unit)


@register.simple_tag
def series_tags(head: SeriesHead) -> SafeString:
    """Render labels for a series that was not measured on a device, each followed by a space."""
    tags = (generated(head.generated), emulated(head.emulated))
    return SafeString("".join(f"{tag} " for tag in tags if tag))


@register.inclusion_tag("tracking/team/burn_down.html")
def burn_down(budget: BudgetRow) -> dict[str, object]:
    """Render the value of a budget over time against its limit; empty if it has none."""
    return {"budget": budget, **chart.burn_down(budget)}


@register.simple_tag
def suspected_step(head: SeriesHead) -> SafeString | str:
    """Render the step that the last values of a series suggest; empty if there is none."""
    if not head.suspected_n:
        return ""
    return format_html(
        '<span class="tag suspected" title="last values / level before them: too few values for a'
        ' change, no alert">suspected {}, n = {}</span>',
        ratio(head.suspected_ratio),
        head.suspected_n,
    )


@register.simple_tag(takes_context=True)
def with_beside(context: Context, page: HistoryPage, key: int) -> str:
    """Return the history's address with one more series in its chart."""
    keys = [other.head.id for other in page.beside] + [key]
    return replace_query(context["request"], **{"with": ",".join(map(str, keys[-MAX_BESIDE:]))})


@register.simple_tag(takes_context=True)
def without_beside(context: Context, page: HistoryPage, key: int) -> str:
    """Return the history's address without one of the other series in its chart."""
    keys = [other.head.id for other in page.beside if other.head.id != key]
    return replace_query(context["request"], **{"with": ",".join(map(str, keys))})
