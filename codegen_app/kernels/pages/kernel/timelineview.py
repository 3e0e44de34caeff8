"""The timeline of a few waves as SVG: what each keeps busy, from the top by pipe, and its waits.

Written here and not in a template: it has hundreds of spans. Colours are the style sheet's; a
span's position within its lane also shows its kind.
"""

from __future__ import annotations

from django.utils.html import escape
from django.utils.safestring import SafeString

from codegen_app.kernels.modelled.timeline import LANE_ROWS, SpanRow, Timeline
from codegen_app.kernels.modelled.view import display_name
from codegen_app.web.ticks import round_ticks

WIDTH = 1200
_LEFT, _TOP, _ROW, _GAP = 104, 20, 6, 12
_LANE = len(LANE_ROWS) * _ROW + _GAP
_MIN_WIDTH = 1.2  # the minimum that is visible, and can be pointed at


def timeline(waves: Timeline, address: str = "") -> SafeString:
    """Return the picture. Each span links to its instruction's line; ``address`` is the URL of the
    page with the listing, "" for this page."""
    height = _TOP + len(waves.lanes) * _LANE
    scale = (WIDTH - _LEFT - 4) / (waves.end - waves.start)
    parts = []
    for at in round_ticks(waves.start, waves.end):
        x = round(_LEFT + (at - waves.start) * scale, 1)
        text = f'<text x="{x + 3}" y="12">{at:,.0f}</text>'.replace(",", "\u202f")
        parts.append(f'<line class="tick" x1="{x}" x2="{x}" y1="4" y2="{height}"/>{text}')
    for number, lane in enumerate(waves.lanes):
        top = _TOP + number * _LANE
        name = f"block {lane.block}, wave {lane.wave}"
        edge = top - _GAP / 2
        spans = (_span(span, name, top, waves.start, scale, address) for span in lane.spans)
        parts.append(
            f'<g data-lane aria-label="{name}">'
            f'<line class="lane" x1="0" x2="{WIDTH}" y1="{edge}" y2="{edge}"/>'
            f'<text x="0" y="{top + 12}">{name}</text>'
            f'<text class="faint" x="0" y="{top + 28}">SIMD {lane.simd}</text>{"".join(spans)}</g>'
        )
    label = f"Modelled timeline of {len(waves.lanes)} waves, cycles {waves.start} to {waves.end}"
    return SafeString(
        f'<svg class="timeline" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
        f' role="group" aria-label="{label}" data-timeline>{"".join(parts)}</svg>'
    )


def _span(span: SpanRow, name: str, top: int, start: int, scale: float, address: str) -> str:
    x = round(_LEFT + (span.start - start) * scale, 1)
    width = max(_MIN_WIDTH, round((span.end - span.start) * scale, 1))
    row = LANE_ROWS.index(span.row)
    row_name = display_name(span.row)
    what = f"stall ({display_name(span.reason)})" if span.reason else f"{row_name} pipe"
    cycles = span.end - span.start
    title = f"{name}, cycle {span.start}: {what}, {cycles} cycle{'s' if cycles != 1 else ''}"
    title += f", line {span.line}: {span.text}" if span.line else ""
    rect = (
        f'<rect class="s-{span.row}" x="{x}" y="{top + row * _ROW}" width="{width}"'
        f' height="{_ROW - 1}">'
        f"<title>{escape(title)}</title></rect>"
    )
    if not span.line:
        return rect
    # Tab reaches one span, arrow keys the others (timeline.js).
    return (
        f'<a href="{escape(address)}#I{span.line}" tabindex="-1"'
        f' aria-label="{escape(title)}">{rect}</a>'
    )
