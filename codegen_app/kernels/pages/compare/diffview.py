"""Rows of a comparison of two texts, as HTML."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.html import escape
from django.utils.safestring import SafeString

from codegen_app.kernels.pages.compare.query import DiffRow
from codegen_app.web.codelines import CHUNK

_GLYPHS = {"added": "+", "removed": "\u2212", "changed": "\u2260"}


def diff(rows: Sequence[DiffRow], label: str) -> SafeString:
    """Return the rows of a comparison: both sides, with a glyph for each line's change.
    ``label`` tells screen readers what is compared."""
    parts = [
        f'<div class="d gap">{row.count} equal lines</div>'
        if row.change == "gap"
        else f'<div class="d {row.change}"><span class="n">{row.left or ""}</span>'
        f'<span class="t">{escape(row.left_text)}</span><span class="n">{row.right or ""}</span>'
        f'<span class="g">{_GLYPHS.get(row.change, "")}</span>'
        f'<span class="t">{escape(row.right_text)}</span></div>'
        for row in rows
    ]
    chunks = [parts[at : at + CHUNK] for at in range(0, len(parts), CHUNK)]
    # The style sheet knows the height of a full chunk, which need not be laid out while hidden.
    body = "".join(
        f"<div{' class=part' if len(chunk) == CHUNK else ''}>{''.join(chunk)}</div>"
        for chunk in chunks
    )
    return SafeString(
        '<div class="codepane short diff" tabindex="0" role="region" aria-label="Differences in '
        f'{escape(label)}">{body}</div>'
    )
