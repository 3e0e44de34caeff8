"""The two panes of a kernel's page: highlighted lines, and how they belong to each other."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.safestring import SafeString
from pygments.lexers.python import PythonLexer

from codegen_app.highlighting import HipLexer, highlight_lines, listing_lexer
from codegen_app.selectors.pages.kernel import KernelPage, artifact_text

CHUNK = 100
TINTS = 6


@dataclass(frozen=True)
class Line:
    """One line of a pane. ``source`` is the source line that it belongs to, 0 for none."""

    number: int
    html: SafeString
    css: str = ""
    source: int = 0
    origin: str = ""


@dataclass(frozen=True)
class Panes:
    """Source and listing in chunks that the browser draws when they come into view."""

    source: tuple[tuple[Line, ...], ...]
    listing: tuple[tuple[Line, ...], ...]


def panes(page: KernelPage) -> Panes:
    """The panes of a kernel's page (1 query where a build is shown)."""
    links = page.use.links if page.use else {}
    source = [
        Line(number, html)
        for number, html in enumerate(highlight_lines(page.source, HipLexer(), links), 1)
    ]
    listing: list[Line] = []
    if page.build and page.build.listing_digest:
        text = artifact_text(page.build.listing_digest)
        lexer = listing_lexer(page.build.target)
        listing = [Line(n, html) for n, html in enumerate(highlight_lines(text, lexer), 1)]
    return Panes(_chunks(source), _chunks(listing))


def plain(text: str) -> tuple[tuple[Line, ...], ...]:
    """A Python text, highlighted, in chunks."""
    return _chunks([Line(n, h) for n, h in enumerate(highlight_lines(text, PythonLexer()), 1)])


def _chunks(lines: list[Line]) -> tuple[tuple[Line, ...], ...]:
    return tuple(tuple(lines[at : at + CHUNK]) for at in range(0, len(lines), CHUNK))
