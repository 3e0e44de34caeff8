"""Notes on measured times."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from codegen_app.tuning.queries.measured_row import Drift
from codegen_app.web.templatetags.kiln import us
from scheduler.stats.intervals import bounds_text

register = template.Library()


@register.simple_tag
def drifted(found: Drift | None) -> SafeString:
    """Render the note that the same kernel had another time before, with that time; empty if it had
    not."""
    if found is None:
        return SafeString("")
    run = f"run {found.run}" if found.run is not None else "before"
    ends = bounds_text(found.before_n, us(found.before_low_ns), us(found.before_high_ns))
    title = (
        f"{us(found.before_ns)} µs ({ends}, n {found.before_n}), {run},"
        f" {found.at:%Y-%m-%d %H:%M} UTC; {found.under or 'no recorded difference in conditions'}"
    )
    kind = "warn" if found.ratio > 1 else "ok"
    return format_html(
        '<span class="status {}" title="Drift: the same kernel took {}">'
        "\N{MULTIPLICATION SIGN}{} since {}</span>",
        *(kind, title, f"{found.ratio:.2f}", run),
    )
