"""Lines of code as HTML, in chunks that the browser lays out when they become visible."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.html import escape
from django.utils.safestring import SafeString
from pygments.lexers.python import PythonLexer

from codegen_app.web.highlighting import highlight_lines

CHUNK = 125  # lines per request of the browser
ROWS = 25  # lines laid out at once, in a fraction of a frame's time


def highlight_python(text: str) -> SafeString:
    html = highlight_lines(text, PythonLexer())
    return chunk_lines([code_row("L", n, line) for n, line in enumerate(html, 1)])


def code_row(
    anchor: str,
    number: int,
    html: SafeString,
    css: str = "",
    source: int = 0,
    title: str = "",
    margin: str = "",
) -> str:
    """Return one line. ``html`` and ``margin`` are safe; the rest is escaped here."""
    mapped = f' data-s="{source}"' if source else ""
    title_attribute = f' title="{escape(title)}"' if title else ""
    return (
        f'<div class="l {css}" id="{anchor}{number}"{mapped}{title_attribute}>'
        f'<a class="n" tabindex="-1" href="#{anchor}{number}">{number}</a>{margin}'
        f'<span class="t">{html}</span></div>'
    )


def chunk_lines(rows: Sequence[str], is_shown: Sequence[bool] = ()) -> SafeString:
    """Return rows in chunks, which the browser lays out only when they become visible; ``is_shown``
    says for each row whether it is visible while directives are hidden, which gives a chunk's
    height."""
    chunks = []
    for at in range(0, len(rows), ROWS):
        shown = is_shown[at : at + ROWS]
        heights = f' data-shown="{sum(shown)}" data-lines="{len(shown)}"' if shown else ""
        chunks.append(f'<div class="rows"{heights}>{"".join(rows[at : at + ROWS])}</div>')
    return SafeString("".join(chunks))
