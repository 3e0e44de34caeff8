"""The two panes of a kernel's page, as HTML: highlighted lines, and how they belong together.

Lines are written here and not in a template: a listing has tens of thousands of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from pygments.lexers.python import PythonLexer

from codegen_app.highlighting import highlight_lines, hip_lexer, listing_lexer
from codegen_app.selectors.pages.kernel import KernelPage
from codegen_app.selectors.pages.listing import ListingLine, ListingView

CHUNK = 100
TINTS = 6


@dataclass(frozen=True)
class Panes:
    """Source and listing; ``listing`` is empty where there is none."""

    source: SafeString
    listing: SafeString


def panes(page: KernelPage) -> Panes:
    """The panes of a kernel's page. Each mapped source line has one tint on both sides."""
    mapped = (
        sorted({line.source for line in page.listing.lines if line.source}) if page.listing else []
    )
    tints = {number: at % TINTS for at, number in enumerate(mapped)}
    target = page.build.target if page.build else ""
    listing = _listing(page.listing, target, tints) if page.listing else mark_safe("")
    return Panes(_source(page, tints), listing)


def plain(text: str) -> SafeString:
    """A Python text, highlighted."""
    html = highlight_lines(text, PythonLexer())
    return _chunks([_row("L", n, line) for n, line in enumerate(html, 1)])


def _source(page: KernelPage, tints: Mapping[int, int]) -> SafeString:
    links = page.use.links if page.use else {}
    titles = _titles(page)
    messages = {d["line"]: d for d in page.build.diagnostics} if page.build else {}
    rows = []
    for number, html in enumerate(highlight_lines(page.source, hip_lexer(), links), 1):
        css = f"tint{tints[number]}" if number in tints else ""
        title = titles.get(number, "")
        if number in messages:
            css += " error"
            title = f"{messages[number]['severity']}: {messages[number]['message']}"
        rows.append(_row("L", number, html, css, number if number in tints else 0, title))
    return _chunks(rows)


def _titles(page: KernelPage) -> dict[int, str]:
    """What each source line computes: the names of graph nodes."""
    titles: dict[int, str] = {}
    for origin in page.use.line_origins if page.use else ():
        for number in range(origin["first"], origin["last"] + 1):
            titles[number] = "computes " + ", ".join(origin["nodes"])
    return titles


def _listing(view: ListingView, target: str, tints: Mapping[int, int]) -> SafeString:
    html = highlight_lines(view.text, listing_lexer(target))
    return _chunks(
        [
            _listing_row(number, line, text, tints)
            for number, (line, text) in enumerate(zip(view.lines, html, strict=True), 1)
        ]
    )


_OWN = "made by the compiler: no line of the source"


def _listing_row(number: int, line: ListingLine, html: SafeString, tints: Mapping[int, int]) -> str:
    if line.kind != "instruction":
        css = "dir" if line.kind in ("directive", "blank") else ""
        return _row("I", number, html, css, margin=_MARGIN)
    if line.jump:
        label = escape(line.target)
        link = f'<a class="nl" href="#I{line.jump}">{label}</a>'
        html = mark_safe(html.replace(f'<span class="nl">{label}</span>', link))  # noqa: S308
    css = f"tint{tints[line.source]}" if line.source else ""
    title = "" if line.source else _OWN
    live = "" if line.live is None else str(line.live)
    peak = ' peak" title="the most live registers' if line.peak else ""
    margin = (
        f'<span class="x">{"│" * min(line.depth, 6)} {line.source or "own"}</span>'
        f'<span class="live{peak}">{live}</span>'
    )
    return _row("I", number, html, css, line.source, title, margin)


_MARGIN = '<span class="x"></span><span class="live"></span>'


def _row(
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
    told = f' title="{escape(title)}"' if title else ""
    return (
        f'<div class="l {css}" id="{anchor}{number}"{mapped}{told}>'
        f'<a class="n" href="#{anchor}{number}">{number}</a>{margin}'
        f'<span class="t">{html}</span></div>'
    )


def _chunks(rows: Sequence[str]) -> SafeString:
    """Rows in chunks, which the browser lays out only when they come into view."""
    chunks = (
        f'<div class="chunk">{"".join(rows[at : at + CHUNK])}</div>'
        for at in range(0, len(rows), CHUNK)
    )
    return mark_safe("".join(chunks))  # noqa: S308 (every row is safe)
