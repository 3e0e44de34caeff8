"""The two panes of a kernel's page as HTML: highlighted lines, and the mapping between them.

Lines are written here and not in a template: a listing has tens of thousands.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.utils.html import escape
from django.utils.safestring import SafeString

from codegen_app.kernels.modelled.view import ModelledView
from codegen_app.kernels.pages.header.query import HeaderPage
from codegen_app.kernels.pages.kernel.codecolumns import (
    LONG,
    code_width,
    format_mean,
    line_figures,
    listing_columns,
    listing_head,
    source_columns,
    source_head,
    widest_code,
)
from codegen_app.kernels.pages.kernel.query import KernelPage
from codegen_app.kernels.queries.listing import (
    FunctionRow,
    ListingLine,
    ListingView,
    LoopRow,
)
from codegen_app.web.codelines import CHUNK, chunk_lines, code_row
from codegen_app.web.highlighting import highlight_lines, lexer_context, listing_lexer, source_lexer

# Lines of a listing in the page itself: all of a short one, else the chunks where the kernel's own
# code begins. The others are loaded when they become visible.
SHORT, INLINE = 500, 2
TINTS, BANDS = 6, 3  # backgrounds, and patterns at the edge: 18 distinct combinations


@dataclass(frozen=True)
class Panes:
    """Source and listing; ``listing`` is empty if there is none.

    ``places`` is for the page's script: the size of a ``chunk``, the URLs of the chunks (``lines``)
    and of the index of all lines (``index``), and ``body``, the lines in source and listing where
    the kernel's own code begins (0: nowhere). The columns are those that have a value; ``widest``
    is the number of characters of the widest instruction that is not long.
    """

    source: SafeString
    listing: SafeString
    places: Mapping[str, object]
    source_columns: tuple[str, ...] = ()
    listing_columns: tuple[str, ...] = ()
    widest: int = 0


def panes(
    page: KernelPage,
    loop: LoopRow | None = None,
    marked_node: str = "",
    modelled: ModelledView | None = None,
) -> Panes:
    """Return the panes of a kernel's page. Each mapped source line has the same tint on both sides.

    With ``loop`` the listing has only that loop's lines. Lines that compute the graph node
    ``marked_node`` are marked. With ``modelled`` both have that report's figures: the source is
    coloured by waiting time.
    """
    view, build = page.listing, page.build
    tints = _tints(view)
    source = _source(page, tints, page.use.links if page.use else {}, marked_node, modelled)
    if view is None or build is None:
        return Panes(source, SafeString(""), {})
    # The kernel's own code begins at the function that is launched first.
    names = [launch["function"] for launch in page.launches]
    launched = [function for function in view.functions if function.name in names]
    longest = max(view.functions, key=lambda function: function.instructions, default=None)
    function = next(iter(launched), longest)
    first_line = function.first_line if function and loop is None else 0
    headers = headers_at(page.url, build.id)
    if loop is not None:
        # Each run of blocks is a chunk of its own.
        chunks = [
            _chunk(_lines(view, first, last + 1, modelled, headers), view.lines[first - 1 : last])
            for first, last in loop.lines
        ]
        listing = SafeString(listing_head(view, modelled) + "".join(chunks))
    elif len(view.lines) <= SHORT:
        listing = _listing(view, modelled, headers)
    else:
        first_chunk = max(0, first_line - 1) // CHUNK
        listing = _listing(view, modelled, headers, range(first_chunk, first_chunk + INLINE))
    report = page.modelled.shown
    query = {
        "view": page.view,
        "model": page.modelled.row.id if page.modelled.row else "",
        "launch": report.shown.number if report and len(report.launches) > 1 else "",
        "loop": loop.first_line if loop else "",
    }
    encoded = urlencode({name: value for name, value in query.items() if value})
    suffix = f"?{encoded}" if encoded else ""
    places = {
        "chunk": CHUNK,
        "lines": f"{page.url}/{build.id}/lines/",
        "query": suffix,
        "index": f"{page.url}/{build.id}/index.json{suffix}",
        "body": (body_line(page), first_line),
    }
    return Panes(
        *(source, listing, places, source_columns(modelled), listing_columns(view, modelled)),
        widest=widest_code(view),
    )


def headers_at(kernel: str, build: int) -> str:
    """Return the URL of a build's headers, for the page ``kernel``."""
    return f"{kernel}/{build}/headers/"


def body_line(page: KernelPage) -> int:
    """Return the source line where the kernel's own code begins: its first device function."""
    names = [str(launch["function"]) for launch in page.launches]
    marks = [*(f"{name}(" for name in names), "__global__", "@cute.kernel"]
    lines = page.source.split("\n")
    numbers = (number for mark in marks for number, text in enumerate(lines, 1) if mark in text)
    return next(numbers, 0)


def offline_panes(page: KernelPage) -> Panes:
    """Return the panes with every line in place and no links to the site."""
    view, build = page.listing, page.build
    source = _source(page, _tints(view), {})
    if view is None or build is None:
        return Panes(source, SafeString(""), {})
    return Panes(source, _listing(view), {}, listing_columns=listing_columns(view, None))


def whole_listing(view: ListingView, modelled: ModelledView) -> SafeString:
    """Return a listing without a build, every line in place, with the figures of a report."""
    return _listing(view, modelled)


def listing_index(view: ListingView, loop: LoopRow | None = None) -> dict[str, object]:
    """Return what the page's script needs about lines that are not loaded: ``source``, the source
    line of each line of the listing (0 for none), ``peaks``, the numbers of the lines with the most
    live registers, ``skipped``, a letter per line, 1 for directives. With ``loop`` there is nothing
    about the lines outside of it."""
    runs = loop.lines if loop else ((1, len(view.lines)),)
    shown = {number for first, last in runs for number in range(first, last + 1)}
    return {
        "source": [
            line.source if number in shown else 0 for number, line in enumerate(view.lines, 1)
        ],
        "peaks": [number for number in view.peaks if number in shown],
        "skipped": "".join("1" if _is_directive(line) else "0" for line in view.lines),
    }


def listing_chunk(
    view: ListingView, first: int, modelled: ModelledView | None = None, headers: str = ""
) -> SafeString:
    """Return the lines of the chunk that begins with line ``first`` (1-based) of a listing;
    ``headers`` is the URL of the headers' sources, "" for none."""
    return _lines(view, first, first + CHUNK, modelled, headers)


def _lines(
    view: ListingView, first: int, end: int, modelled: ModelledView | None, headers: str
) -> SafeString:
    """Return lines ``first`` to ``end`` (exclusive) in the chunks that the browser lays out."""
    tints = _tints(view)
    text = view.text.split("\n")
    lexer = listing_lexer(view.dialect)
    before = lexer_context(lexer, text[: first - 1])
    part = "\n".join(before + text[first - 1 : end - 1])
    html = highlight_lines(part, lexer)[len(before) :]
    lines = view.lines[first - 1 : end - 1]
    figures = modelled.by_line if modelled else {}
    rows = [
        _listing_row(
            *(number, line, code, tints, line_figures(figures.get(number), modelled)),
            headers,
            is_long=code_width(text[number - 1]) > LONG,
        )
        for number, (line, code) in enumerate(zip(lines, html, strict=True), first)
    ]
    return chunk_lines(rows, [not _is_directive(line) for line in lines])


def block_rows(function: FunctionRow, address: str) -> SafeString:
    """Return the rows of a table of basic blocks; a long function has hundreds. ``address`` is the
    URL of the page with the whole listing."""

    def link(line: int, text: str) -> str:
        return f'<a href="{escape(address)}#I{line}">{text}</a>'

    rows = []
    for block in function.blocks:
        lines = link(block.first_line, f"{block.first_line}\N{EN DASH}{block.last_line}")
        successors = " ".join(link(line, str(line)) for line in block.successors)
        rows.append(
            f'<tr><td class="num">{block.number}</td><td class="code">{escape(block.label)}</td>'
            f'<td class="code">{lines}</td><td class="num">{block.instructions}</td>'
            f'<td class="num">{block.depth}</td><td class="code">{successors}</td></tr>'
        )
    return SafeString("".join(rows))


def header_lines(page: HeaderPage, kernel: str) -> SafeString:
    """Return a header's lines, each with its number of instructions, which links to the first one
    on the page ``kernel``."""
    rows = []
    for number, html in enumerate(highlight_lines(page.text, source_lexer("source.hip")), 1):
        count = page.counts.get(number, 0)
        url = f"{escape(kernel)}#I{page.first.get(number, 0)}"
        margin = f'<a class="x" tabindex="-1" href="{url}">{count}</a>' if count else _NO_COUNT
        css = "of" if count else ""
        rows.append(code_row("L", number, html, css, margin=margin))
    head = '<span class="n">line</span><span class="x" title="instructions">count</span>'
    return SafeString(
        f'<div class="cols">{head}<span class="t">header</span></div>{chunk_lines(rows)}'
    )


_NO_COUNT = '<span class="x"></span>'


def _tints(view: ListingView | None) -> dict[int, str]:
    """Return the classes of each source line with instructions: its background and edge pattern."""
    mapped = sorted({line.source for line in view.lines if line.source}) if view else []
    return {
        number: f"tint{at % TINTS} band{at // TINTS % BANDS}" for at, number in enumerate(mapped)
    }


def _source(
    page: KernelPage,
    tints: Mapping[int, str],
    links: Mapping[str, str],
    marked_node: str = "",
    modelled: ModelledView | None = None,
) -> SafeString:
    titles = {
        number: "computes " + ", ".join(origin["nodes"])
        for origin in (page.use.line_origins if page.use else ())
        for number in range(origin["first"], origin["last"] + 1)
    }
    marked = {
        number
        for row in page.provenance
        if row.node == marked_node
        for first, last in row.lines
        for number in range(first, last + 1)
    }
    messages = {d["line"]: d for d in page.build.diagnostics} if page.build else {}
    rows = []
    for number, html in enumerate(
        highlight_lines(page.source, source_lexer(page.source_file), links), 1
    ):
        css = tints.get(number, "")
        title = titles.get(number, "")
        if number in marked:
            css += " of"
        if number in messages:
            css += " error"
            title = f"{messages[number]['severity']}: {messages[number]['message']}"
        margin = ""
        if modelled is not None and (row := modelled.lines.get(number)) is not None:
            margin = f'<span class="heat">{100 * row.share:.1f}%</span>' if row.heat else ""
            if row.inclusive > row.share:
                margin += f'<span class="incl">{100 * row.inclusive:.1f}%</span>'
            css += f" heat{row.heat}" if row.heat else ""
            waits = (
                f"modelled on {modelled.where}: {format_mean(row.stall)} stall cycles per wave,"
                f" {100 * row.share:.1f}% of all stall cycles"
            )
            if row.inclusive > row.share:
                waits += f", {100 * row.inclusive:.1f}% with the code that was inlined here"
            title = f"{title}; {waits}" if title else waits
        mapped = number if number in tints else 0
        rows.append(code_row("L", number, html, css, mapped, title, margin))
    # A long comment at the beginning is folded.
    mark = "#" if page.source_file.endswith(".py") else "//"
    lines = page.source.split("\n")
    comment = next((at for at, text in enumerate(lines) if not text.startswith(mark)), 0)
    folded, head = 0, source_head(modelled)
    if comment >= _LEAST_FOLDED:
        folded = comment
        head += (
            f'<details data-fold="metadata"><summary>lines 1 to {folded}: the metadata comment'
            f"</summary>{''.join(rows[:folded])}</details>"
        )
    return SafeString(head + chunk_lines(rows[folded:]))


_LEAST_FOLDED = 3


def _listing(
    view: ListingView,
    modelled: ModelledView | None = None,
    headers: str = "",
    inline: Collection[int] | None = None,
) -> SafeString:
    """Return all chunks, or with ``inline`` only these (from 0) and placeholders with height for
    the others."""
    chunks = []
    for at, first in enumerate(range(1, len(view.lines) + 1, CHUNK)):
        lines = view.lines[first - 1 : first - 1 + CHUNK]
        is_inline = inline is None or at in inline
        body = listing_chunk(view, first, modelled, headers) if is_inline else ""
        chunks.append(_chunk(body, lines, 0 if is_inline else first))
    return SafeString(listing_head(view, modelled) + "".join(chunks))


def _chunk(body: str, lines: Sequence[ListingLine], later: int = 0) -> str:
    """Return a chunk, or a placeholder for the lines that are loaded from ``later``."""
    visible = sum(1 for line in lines if not _is_directive(line))
    first = f' data-later="{later}"' if later else ""
    return (
        f'<div class="chunk" data-shown="{visible}" data-lines="{len(lines)}"{first}>{body}</div>'
    )


def _is_directive(line: ListingLine) -> bool:
    """Return whether a line is for the assembler and not for the reader, who can show it again."""
    return line.kind in ("directive", "blank")


_COMPILER_TITLE = "compiler-generated: no source line"


def _listing_row(
    number: int,
    line: ListingLine,
    html: SafeString,
    tints: Mapping[int, str],
    figures: tuple[str, str],
    headers: str,
    *,
    is_long: bool,
) -> str:
    """Return a row; a column without a value has no cell. ``headers`` is the URL of the headers'
    sources, "" for no links."""
    cells, waits = figures
    if line.kind != "instruction":
        return code_row("I", number, html, "dir" if _is_directive(line) else "")
    if line.jump:
        label = escape(line.target)
        link = f'<a class="nl" tabindex="-1" href="#I{line.jump}">{label}</a>'
        html = SafeString(html.replace(f'<span class="nl">{label}</span>', link))
    css = tints.get(line.source, "")
    through = f"inlined at line {', '.join(map(str, line.callers))}" if line.callers else ""
    title = "; ".join(filter(None, ("" if line.source else _COMPILER_TITLE, through, waits)))
    css += " block" if line.block > 1 else ""
    css += " long" if is_long else ""
    margin = _header_cell(line, headers) if line.header else ""
    if line.live is not None:
        peak = ' peak" title="peak number of live registers' if line.peak else ""
        margin += f'<span class="live{peak}">{line.live}</span>'
    if line.source or line.depth:
        bars = "│" * min(line.depth, 6)
        margin += f'<span class="x">{bars} {line.source or ""}</span>'
    return code_row("I", number, html, css, line.source, title, margin + cells)


def _header_cell(line: ListingLine, headers: str) -> str:
    """Return the header that a line was inlined from, with a link if ``headers`` is their URL."""
    source = f"inlined from {line.header}"
    source += f", line {line.header_line}" if line.header_line else ""
    text = f'title="{escape(source)}">{escape(line.header_name)}'
    if not headers:
        return f'<span class="h" {text}</span>'
    anchor = f"#L{line.header_line}" if line.header_line else ""
    url = f"{escape(headers + line.header)}{anchor}"
    return f'<a class="h" tabindex="-1" href="{url}" {text}</a>'
