"""Lines of code as HTML, in chunks that the browser lays out when they come into view."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.html import escape
from django.utils.safestring import SafeString
from pygments.lexers.python import PythonLexer

from codegen_app.highlighting import highlight_lines

CHUNK = 250  # lines: what the browser lays out, or asks for, at once


def plain(text: str) -> SafeString:
    """A Python text, highlighted."""
    html = highlight_lines(text, PythonLexer())
    return in_chunks([code_row("L", n, line) for n, line in enumerate(html, 1)])


def code_row(
    anchor: str,
    number: int,
    html: SafeString,
    css: str = "",
    source: int = 0,
    title: str = "",
    margin: str = "",
) -> str:
    """One line. ``html`` and ``margin`` are safe; the rest is escaped here."""
    mapped = f' data-s="{source}"' if source else ""
    title_attribute = f' title="{escape(title)}"' if title else ""
    return (
        f'<div class="l {css}" id="{anchor}{number}"{mapped}{title_attribute}>'
        f'<a class="n" tabindex="-1" href="#{anchor}{number}">{number}</a>{margin}'
        f'<span class="t">{html}</span></div>'
    )


def in_chunks(rows: Sequence[str]) -> SafeString:
    """Rows in chunks, which the browser lays out only when they come into view."""
    parts = (
        f'<div class="chunk">{"".join(rows[at : at + CHUNK])}</div>'
        for at in range(0, len(rows), CHUNK)
    )
    return SafeString("".join(parts))
