"""How ratios, figures in any unit and their statuses are written."""

from __future__ import annotations

from collections.abc import Mapping
from math import floor, log10

from django import template
from django.template import Context
from django.utils.html import format_html
from django.utils.safestring import SafeString

from codegen_app.selectors.comparing.comparison import STATUSES
from codegen_app.selectors.pages.comparing import Choice
from codegen_app.templatetags.kiln import grouped
from codegen_app.views.page import changed

register = template.Library()

_GLYPHS: Mapping[str, str] = {
    "slower": "bad",
    "faster": "ok",
    "unknown": "warn",
    "same": "wait",
    "new": "run",
    "gone": "off",
}
_TIMES = (("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9))
_LEAST, _MOST = 1e-3, 1e9  # beyond these as a power of ten


@register.simple_tag
def compared_status(name: str) -> SafeString:
    """A status of a comparison with its colour and glyph."""
    return format_html('<span class="status {}">{}</span>', _GLYPHS[name], STATUSES[name].value)


@register.simple_tag(takes_context=True)
def choose(context: Context, side: str, choice: Choice) -> str:
    """This page's address with the choice as that side."""
    given = {side: choice.text, "repository": choice.repository, "find": "", "start": ""}
    return changed(context["request"], **given)


@register.filter
def factor(value: float | None) -> str:
    """A ratio with three digits after the point; nothing for None."""
    return "" if value is None else grouped(value, 3)


@register.filter
def figure(value: float | None, unit: str) -> str:
    """A figure of any unit with four digits; nanoseconds as what leaves the fewest before the
    point."""
    if value is None:
        return ""
    if unit == "ns":
        unit, by = next(
            ((name, by) for name, by in reversed(_TIMES) if abs(value) >= by), _TIMES[0]
        )
        value /= by
    return f"{_digits(value)} {unit}".rstrip()


def _digits(value: float) -> str:
    if value and not _LEAST <= abs(value) < _MOST:
        return f"{value:.3e}"
    before = floor(log10(abs(value))) if value else 0
    return grouped(value, max(0, 3 - before))
