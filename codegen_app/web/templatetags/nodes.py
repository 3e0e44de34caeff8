"""Kinds of nodes as pages show them: a colour, and a glyph for readers who cannot tell colours
apart."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

# The engine's kinds, and those of the graph drawing: calls without a kernel, and modules.
GLYPHS = {
    "gemm": "\N{MULTIPLICATION SIGN}",
    "convolution": "\N{ASTERISK OPERATOR}",
    "depthwise": "\N{IDENTICAL TO}",
    "attention": "\N{BULLSEYE}",
    "reduction": "\N{GREEK CAPITAL LETTER SIGMA}",
    "pointwise": "\N{LATIN SMALL LETTER F WITH HOOK}",
    "scan": "\N{RIGHT-POINTING DOUBLE ANGLE QUOTATION MARK}",
    "scatter": "\N{THEREFORE}",
    "sort": "\N{UP DOWN ARROW}",
    "extern": "\N{NORTH EAST ARROW}",
    "loop": "\N{CLOCKWISE OPEN CIRCLE ARROW}",
    "view": "=",
    "module": "\N{BLACK RIGHT-POINTING SMALL TRIANGLE}",
}


@register.simple_tag
def kind(name: str, label: str = "") -> SafeString:
    """Render a kind of node with its colour and glyph; ``label`` replaces its name."""
    return format_html(
        '<span class="node-kind kind-{}" data-kind="{}" data-glyph="{}">{}</span>',
        name,
        name,
        GLYPHS[name],
        label or name,
    )


@register.simple_tag
def kind_glyph(name: str) -> SafeString:
    """Render a kind of node with its colour and glyph alone; its name is the tooltip."""
    return format_html(
        '<span class="node-kind kind-{}" data-glyph="{}" title="{}">'
        '<span class="sr">{}</span></span>',
        name,
        GLYPHS[name],
        name,
        name,
    )
