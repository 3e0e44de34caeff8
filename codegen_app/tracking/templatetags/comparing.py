"""Format ratios and statuses of comparisons."""

from __future__ import annotations

from collections.abc import Mapping

from django import template
from django.template import Context
from django.utils.html import format_html
from django.utils.safestring import SafeString

from codegen_app.tracking.pages.compare_revisions.query import SideChoice
from codegen_app.web.addresses import replace_query
from codegen_app.web.templatetags.kiln import grouped

register = template.Library()

_GLYPHS: Mapping[str, str] = {
    "slower": "bad",
    "faster": "ok",
    "uncertain": "warn",
    "unknown": "warn",
    "same": "wait",
    "new": "run",
    "gone": "off",
}


@register.simple_tag
def compared_status(name: str) -> SafeString:
    """Render a comparison's status with its colour and glyph."""
    return format_html('<span class="status {}">{}</span>', _GLYPHS[name], name)


@register.simple_tag(takes_context=True)
def choose(context: Context, side: str, choice: SideChoice) -> str:
    """Return this page's address with the choice as that side."""
    changes = {side: choice.text, "repository": choice.repository, "find": "", "start": ""}
    return replace_query(context["request"], **changes)


@register.filter
def factor(value: float | None) -> str:
    """Format a ratio with three decimal digits; empty for None."""
    return "" if value is None else grouped(value, 3)
