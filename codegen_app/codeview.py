"""The two panes of a kernel's page, as HTML: highlighted lines, and how they belong together.

Lines are written here and not in a template: a listing has tens of thousands of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.utils.html import escape
from django.utils.safestring import SafeString
from pygments.lexers.python import PythonLexer

from codegen_app.highlighting import highlight_lines, listing_lexer, opened, source_lexer
from codegen_app.selectors.modelled.view import InstructionRow, ModelledView
from codegen_app.selectors.pages.compare import DiffRow
from codegen_app.selectors.pages.kernel import KernelPage
from codegen_app.selectors.pages.listing import (
    BlockRow,
    FunctionRow,
    ListingLine,
    ListingView,
    LoopRow,
)

CHUNK = 250  # lines: what the browser lays out, or asks for, at once
INLINE = 4  # chunks of a listing that come with the page; the others come into view later
TINTS = 6


@dataclass(frozen=True)
class Panes:
    """Source and listing; ``listing`` is empty where there is none.

    ``places`` is what the page's script needs of lines that it does not have yet: ``source``, the
    source line of each line of the listing (0 for none), and ``peaks``, the numbers of the lines
    with the most live registers.
    """

    source: SafeString
    listing: SafeString
    places: Mapping[str, object]


def panes(
    page: KernelPage,
    loop: LoopRow | None = None,
    of: str = "",
    modelled: ModelledView | None = None,
) -> Panes:
    """The panes of a kernel's page. Each mapped source line has one tint on both sides.

    With ``loop`` the listing is that loop's lines alone. What computes the graph node ``of`` is
    marked. With ``modelled`` both have the figures of that report: the source is heated by where
    waves wait.
    """
    view, build = page.listing, page.build
    tints = _tints(view)
    source = _source(page, tints, page.use.links if page.use else {}, of, modelled)
    if view is None or build is None:
        return Panes(source, SafeString(""), {})
    if loop is not None:
        return Panes(source, _loop(view, loop, modelled), _places(view, _lines_of(loop)))
    address = f"{page.url}/{build.id}/lines"
    listing = _listing(view, address, _query(page), modelled)
    return Panes(source, listing, _places(view))


def _query(page: KernelPage) -> str:
    """What the address of a chunk of the listing says of the page."""
    shown = page.modelled.shown
    given = {
        "view": page.view,
        "model": page.modelled.row.id if page.modelled.row else "",
        "launch": shown.shown.number if shown and len(shown.launches) > 1 else "",
    }
    return urlencode({name: value for name, value in given.items() if value})


def offline(page: KernelPage) -> Panes:
    """The same with every line in place and no link that leads to the site."""
    view, build = page.listing, page.build
    source = _source(page, _tints(view), {})
    if view is None or build is None:
        return Panes(source, SafeString(""), {})
    return Panes(source, _listing(view, ""), {})


def whole_listing(view: ListingView, modelled: ModelledView) -> SafeString:
    """A listing that belongs to no build, every line in place, with the figures of a report."""
    return _listing(view, "", "", modelled)


def _places(view: ListingView, shown: Collection[int] | None = None) -> Mapping[str, object]:
    """Of lines that are not shown (``shown`` has the numbers of those that are) nothing."""
    return {
        "chunk": CHUNK,
        "source": [
            line.source if shown is None or number in shown else 0
            for number, line in enumerate(view.lines, 1)
        ],
        "peaks": [number for number in view.peaks if shown is None or number in shown],
    }


def listing_chunk(
    view: ListingView, first: int, modelled: ModelledView | None = None
) -> SafeString:
    """The lines of the chunk that begins with line ``first`` (1-based) of a listing."""
    return SafeString("".join(_rows(view, first, first + CHUNK, modelled)))


def _rows(
    view: ListingView, first: int, end: int, modelled: ModelledView | None = None
) -> list[str]:
    """Lines ``first`` to ``end`` (exclusive), as many as there are."""
    tints = _tints(view)
    text = view.text.split("\n")
    lexer = listing_lexer(view.dialect)
    before = opened(lexer, text[: first - 1])
    part = "\n".join(before + text[first - 1 : end - 1])
    html = highlight_lines(part, lexer)[len(before) :]
    lines = view.lines[first - 1 : end - 1]
    figures = modelled.by_line if modelled else {}
    return [
        _listing_row(number, line, one, tints, _figures(figures.get(number), modelled))
        for number, (line, one) in enumerate(zip(lines, html, strict=True), first)
    ]


def _lines_of(loop: LoopRow) -> set[int]:
    return {number for first, last in loop.lines for number in range(first, last + 1)}


def _loop(view: ListingView, loop: LoopRow, modelled: ModelledView | None = None) -> SafeString:
    """A loop's lines, each run of blocks in a chunk of its own."""
    chunks = []
    for first, last in loop.lines:
        rows = "".join(_rows(view, first, last + 1, modelled))
        lines = view.lines[first - 1 : last]
        chunks.append(_chunk(rows, lines))
    return SafeString(_head(modelled) + "".join(chunks))


def blocks(function: FunctionRow, address: str) -> SafeString:
    """The rows of a table of basic blocks, which has hundreds in a long function. ``address`` is
    that of the page with the whole listing."""
    return SafeString("".join(_block_row(block, address) for block in function.blocks))


def _block_row(block: BlockRow, address: str) -> str:
    def link(line: int, text: str) -> str:
        return f'<a href="{escape(address)}#I{line}">{text}</a>'

    lines = link(block.first_line, f"{block.first_line}\N{EN DASH}{block.last_line}")
    then = " ".join(link(line, str(line)) for line in block.successors)
    return (
        f'<tr><td class="num">{block.number}</td><td class="code">{escape(block.label)}</td>'
        f'<td class="code">{lines}</td><td class="num">{block.instructions}</td>'
        f'<td class="num">{block.depth}</td><td class="code">{then}</td></tr>'
    )


def plain(text: str) -> SafeString:
    """A Python text, highlighted."""
    html = highlight_lines(text, PythonLexer())
    return _chunks([_row("L", n, line) for n, line in enumerate(html, 1)])


def diff(rows: Sequence[DiffRow]) -> SafeString:
    """Rows of a comparison: both sides, with a glyph for what became of a line."""
    parts = [_diff_row(row) for row in rows]
    chunks = [parts[at : at + CHUNK] for at in range(0, len(parts), CHUNK)]
    # The style sheet knows the height of a full one, which need not be laid out out of view.
    body = "".join(
        f"<div{' class=part' if len(chunk) == CHUNK else ''}>{''.join(chunk)}</div>"
        for chunk in chunks
    )
    return SafeString(
        '<div class="codepane short diff" tabindex="0" role="region" aria-label="Difference">'
        f"{body}</div>"
    )


_GLYPHS = {"added": "+", "removed": "\u2212", "changed": "\u2260"}


def _diff_row(row: DiffRow) -> str:
    if row.change == "gap":
        return f'<div class="d gap">{row.count} equal</div>'
    return (
        f'<div class="d {row.change}"><span class="n">{row.left or ""}</span>'
        f'<span class="t">{escape(row.left_text)}</span><span class="n">{row.right or ""}</span>'
        f'<span class="g">{_GLYPHS.get(row.change, "")}</span>'
        f'<span class="t">{escape(row.right_text)}</span></div>'
    )


def _tints(view: ListingView | None) -> dict[int, int]:
    mapped = sorted({line.source for line in view.lines if line.source}) if view else []
    return {number: at % TINTS for at, number in enumerate(mapped)}


def _source(
    page: KernelPage,
    tints: Mapping[int, int],
    links: Mapping[str, str],
    of: str = "",
    modelled: ModelledView | None = None,
) -> SafeString:
    titles = _titles(page)
    marked = {
        number
        for row in page.provenance
        if row.node == of
        for first, last in row.lines
        for number in range(first, last + 1)
    }
    messages = {d["line"]: d for d in page.build.diagnostics} if page.build else {}
    rows = []
    for number, html in enumerate(
        highlight_lines(page.source, source_lexer(page.source_file), links), 1
    ):
        css = f"tint{tints[number]}" if number in tints else ""
        title = titles.get(number, "")
        if number in marked:
            css += " of"
        if number in messages:
            css += " error"
            title = f"{messages[number]['severity']}: {messages[number]['message']}"
        margin, heat, waits = _heat(number, modelled)
        title = "; ".join(filter(None, (title, waits)))
        mapped = number if number in tints else 0
        rows.append(_row("L", number, html, css + heat, mapped, title, margin))
    return _chunks(rows)


def _heat(number: int, modelled: ModelledView | None) -> tuple[str, str, str]:
    """How a line of the source is heated: its figure, its class, and what they say."""
    if modelled is None:
        return "", "", ""
    row = modelled.lines.get(number)
    if row is None:
        return '<span class="heat"></span>', "", ""
    says = (
        f"modelled on {modelled.where}: a wave waits {_short(row.stall)} cycles here,"
        f" {100 * row.share:.1f}% of all that it waits"
    )
    return f'<span class="heat">{100 * row.share:.1f}%</span>', f" heat{row.heat}", says


def _titles(page: KernelPage) -> dict[int, str]:
    """What each source line computes: the names of graph nodes."""
    titles: dict[int, str] = {}
    for origin in page.use.line_origins if page.use else ():
        for number in range(origin["first"], origin["last"] + 1):
            titles[number] = "computes " + ", ".join(origin["nodes"])
    return titles


def _listing(
    view: ListingView, address: str, query: str = "", modelled: ModelledView | None = None
) -> SafeString:
    """The first chunks, and places for the others that know their height and address; without
    an address all of them. ``query`` is what their addresses say of the page."""
    query = f"?{query}" if query else ""
    chunks = []
    for at, first in enumerate(range(1, len(view.lines) + 1, CHUNK)):
        lines = view.lines[first - 1 : first - 1 + CHUNK]
        here = at < INLINE or not address
        body = listing_chunk(view, first, modelled) if here else ""
        chunks.append(_chunk(body, lines, "" if here else f"{address}/{first}{query}"))
    return SafeString(_head(modelled) + "".join(chunks))


def _chunk(body: str, lines: Sequence[ListingLine], address: str = "") -> str:
    shown = sum(1 for line in lines if not _is_directive(line))
    later = f' data-src="{address}"' if address else ""
    return f'<div class="chunk" data-shown="{shown}" data-lines="{len(lines)}"{later}>{body}</div>'


def _is_directive(line: ListingLine) -> bool:
    """Whether a line is for the assembler and not for the reader, who can show it again."""
    return line.kind in ("directive", "blank")


_OWN = "made by the compiler: no line of the source"


def _listing_row(
    number: int,
    line: ListingLine,
    html: SafeString,
    tints: Mapping[int, int],
    figures: tuple[str, str],
) -> str:
    cells, waits = figures
    if line.kind != "instruction":
        css = "dir" if _is_directive(line) else ""
        return _row("I", number, html, css, margin=_MARGIN + cells)
    if line.jump:
        label = escape(line.target)
        link = f'<a class="nl" href="#I{line.jump}">{label}</a>'
        html = SafeString(html.replace(f'<span class="nl">{label}</span>', link))
    css = f"tint{tints[line.source]}" if line.source else ""
    title = "; ".join(filter(None, ("" if line.source else _OWN, waits)))
    if line.block > 1:
        css += " block"
    live = "" if line.live is None else str(line.live)
    peak = ' peak" title="the most live registers' if line.peak else ""
    margin = (
        f'<span class="x">{"│" * min(line.depth, 6)} {line.source or "own"}</span>'
        f'<span class="live{peak}">{live}</span>{cells}'
    )
    return _row("I", number, html, css, line.source, title, margin)


def _head(modelled: ModelledView | None) -> str:
    """What the columns of figures are, above them."""
    if modelled is None:
        return ""
    where = escape(f"modelled on {modelled.where}, a wave in launch {modelled.shown.number}")
    cells = "".join(
        f'<span class="m {css}" title="{where}: {title}">{name}</span>'
        for css, name, title in _COLUMNS
    )
    return (
        '<div class="l head"><span class="n"></span><span class="x">modelled</span>'
        f'<span class="live"></span>{cells}<span class="t"></span></div>'
    )


_COLUMNS = (
    ("m-runs", "runs", "how often a wave executes it"),
    ("m-stall", "stall", "cycles that a wave waits before it"),
    ("m-bank", "LDS \N{MULTIPLICATION SIGN}", "cycles over those without bank conflicts"),
    ("m-bytes", "used/moved", "bytes used of bytes moved, an execution"),
)
_NOTHING = "".join(f'<span class="m {css}"></span>' for css, _, _ in _COLUMNS)


def _figures(row: InstructionRow | None, modelled: ModelledView | None) -> tuple[str, str]:
    """The figures of a line of the listing, and what its title says of them."""
    if modelled is None:
        return "", ""
    if row is None:
        return _NOTHING, ""
    moved = f"{_short(row.bytes_used)}/{_short(row.bytes_moved)}" if row.bytes_moved else ""
    wasteful = bool(row.bytes_moved and (row.bytes_used or 0) < row.bytes_moved / 2)
    conflict = f"{row.conflict:.2f}" if row.conflict is not None else ""
    bad = row.conflict is not None and row.conflict > _FREE_OF_CONFLICTS
    cells = (
        f'<span class="m m-runs">{_short(row.executed)}</span>'
        f'<span class="m m-stall">{_short(row.stall) if row.stall else ""}</span>'
        f'<span class="m m-bank{" bad" if bad else ""}">{conflict}</span>'
        f'<span class="m m-bytes{" bad" if wasteful else ""}">{moved}</span>'
    )
    reasons = ", ".join(
        f"{_short(cycles)} for {name}"
        for name, cycles in sorted(row.reasons.items(), key=lambda pair: -pair[1])
    )
    says = f"modelled on {modelled.where}: {_short(row.lanes)} lanes on, issue {_short(row.issue)}"
    says += f", waits {_short(row.stall)} cycles ({reasons})" if reasons else ""
    says += f", {_short(row.requests)} cache lines an execution" if row.requests else ""
    return cells, says


_FREE_OF_CONFLICTS = 1.005
_THIN = "\u202f"


def _short(value: float | None) -> str:
    """A mean with as many digits as say something: 0.25, 3.5, 1 024."""
    if value is None:
        return ""
    if value >= 100 or value == round(value):
        return f"{value:,.0f}".replace(",", _THIN)
    return f"{value:.2f}".rstrip("0").rstrip(".") if value < 10 else f"{value:.1f}"


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
    title_attribute = f' title="{escape(title)}"' if title else ""
    return (
        f'<div class="l {css}" id="{anchor}{number}"{mapped}{title_attribute}>'
        f'<a class="n" href="#{anchor}{number}">{number}</a>{margin}'
        f'<span class="t">{html}</span></div>'
    )


def _chunks(rows: Sequence[str]) -> SafeString:
    """Rows in chunks, which the browser lays out only when they come into view."""
    chunks = (
        f'<div class="chunk">{"".join(rows[at : at + CHUNK])}</div>'
        for at in range(0, len(rows), CHUNK)
    )
    return SafeString("".join(chunks))
