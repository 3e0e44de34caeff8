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
def drifted(drift: Drift | None) -> SafeString:
    """Render the note that the same kernel had another time before, with that time; empty if it had
    not."""
    if drift is None:
        return SafeString("")
    run = f"run {drift.run}" if drift.run is not None else "before"
    ends = bounds_text(drift.before_n, us(drift.before_low_ns), us(drift.before_high_ns))
    title = (
        f"{us(drift.before_ns)} µs ({ends}, n {drift.before_n}), {run},"
        f" {drift.at:%Y-%m-%d %H:%M} UTC; {drift.under or 'no recorded difference in conditions'}"
    )
    kind = "warn" if drift.ratio > 1 else "ok"
    return format_html(
        '<span class="status {}" title="Drift: the same kernel took {}">'
        "\N{MULTIPLICATION SIGN}{} since {}</span>",
        *(kind, title, f"{drift.ratio:.2f}", run),
    )
