"""The columns of figures beside the lines of a listing, and the heads above all columns."""

from __future__ import annotations

import re

from django.utils.html import escape

from codegen_app.kernels.modelled.view import InstructionRow, ModelledView, display_name
from codegen_app.kernels.queries.listing import ListingView


def source_columns(modelled: ModelledView | None) -> tuple[str, ...]:
    """Return the source's columns that have a value."""
    if modelled is None:
        return ()
    is_inlined = any(row.inclusive > row.share for row in modelled.lines.values())
    return ("heat", "incl") if is_inlined else ("heat",)


def source_head(modelled: ModelledView | None) -> str:
    """Return the heads of the source's columns."""
    if modelled is None:
        return f'<div class="cols">{_cell("n", "line")}{_cell("t", "source")}</div>'
    heat = _cell("heat", "stall", f"% of all stall cycles, modelled on {modelled.where}")
    title = f"% of all stall cycles, with code that was inlined here, modelled on {modelled.where}"
    heads = heat + _cell("incl", "incl.", title)
    return f'<div class="cols">{_cell("n", "line")}{heads}{_cell("t", "source")}</div>'


def listing_columns(view: ListingView, modelled: ModelledView | None) -> tuple[str, ...]:
    """Return the columns of a listing that have a value, the least important first: a narrow pane
    leaves them out in this order."""
    rows = modelled.instructions if modelled else ()
    has_value = {
        "m-bytes": any(row.bytes_moved for row in rows),
        "h": bool(view.headers),
        "m-bank": any((row.conflict or 0) > _FREE_OF_CONFLICTS for row in rows),
        "m-runs": bool(rows),
        "live": view.follows_registers,
        "x": any(line.source for line in view.lines),
        "m-stall": any(row.stall for row in rows),
    }
    return tuple(name for name, is_shown in has_value.items() if is_shown)


def listing_head(view: ListingView, modelled: ModelledView | None) -> str:
    """Return the heads of a listing's columns."""
    heads = {
        "x": ("source", "a bar for each enclosing loop; the source line"),
        "live": ("live", f"live {view.registers}"),
        "h": ("header", "header of the inlined code"),
    }
    if modelled is not None:
        where = f"modelled on {modelled.where}, per wave of launch {modelled.shown.number}"
        heads |= {css: (name, f"{where}: {title}") for css, name, title in _COLUMNS}
    shown = listing_columns(view, modelled)
    cells = (
        _cell(f"m {css}" if css.startswith("m-") else css, *head)
        for css, head in heads.items()
        if css in shown
    )
    return (
        f'<div class="cols">{_cell("n", "line")}{"".join(cells)}{_cell("t", "instruction")}</div>'
    )


LONG = 72  # characters; a longer instruction takes the room of its figures in a narrow pane


def code_width(text: str) -> int:
    """Return the number of characters of an instruction, without its comment."""
    return len(_COMMENT.split(text.expandtabs(4), maxsplit=1)[0].rstrip())


def widest_code(view: ListingView) -> int:
    """Return the number of characters of the widest instruction that is not long."""
    rows = zip(view.lines, view.text.split("\n"), strict=True)
    widths = (code_width(text) for line, text in rows if line.kind == "instruction")
    return max((width for width in widths if width <= LONG), default=0)


def _cell(css: str, name: str, title: str = "") -> str:
    tooltip = f' title="{escape(title)}"' if title else ""
    return f'<span class="{css}"{tooltip}>{escape(name)}</span>'


_COLUMNS = (
    ("m-runs", "runs", "number of executions"),
    ("m-stall", "stall", "stall cycles before the instruction"),
    ("m-bank", "LDS\N{MULTIPLICATION SIGN}", "bank conflict factor"),
    ("m-bytes", "bytes", "bytes used / bytes moved per execution"),
)
_COMMENT = re.compile(r"\s(?:;|#|//|/\*)\s|\s;$")


def line_figures(row: InstructionRow | None, modelled: ModelledView | None) -> tuple[str, str]:
    """Return the figures of a line of the listing, and their title."""
    if modelled is None or row is None:
        return "", ""
    moved = (
        f"{format_mean(row.bytes_used)}/{format_mean(row.bytes_moved)}" if row.bytes_moved else ""
    )
    is_wasteful = bool(row.bytes_moved and (row.bytes_used or 0) < row.bytes_moved / 2)
    conflict = f"{row.conflict:.2f}" if row.conflict is not None else ""
    bad = row.conflict is not None and row.conflict > _FREE_OF_CONFLICTS
    cells = "".join(
        f'<span class="m {css}">{text}</span>'
        for css, text in (
            ("m-runs", format_mean(row.executed)),
            ("m-stall", format_mean(row.stall) if row.stall else ""),
            ("m-bank bad" if bad else "m-bank", conflict),
            ("m-bytes bad" if is_wasteful else "m-bytes", moved),
        )
        if text
    )
    reasons = ", ".join(
        f"{display_name(name)} {format_mean(cycles)}"
        for name, cycles in sorted(row.reasons.items(), key=lambda pair: -pair[1])
    )
    tooltip = f"modelled on {modelled.where}: {format_mean(row.lanes)} active lanes,"
    tooltip += f" issue {format_mean(row.issue)} cycles"
    tooltip += f", stall {format_mean(row.stall)} cycles ({reasons})" if reasons else ""
    tooltip += f", {format_mean(row.requests)} cache lines per execution" if row.requests else ""
    return cells, tooltip


_FREE_OF_CONFLICTS = 1.005
_THIN = "\u202f"


def format_mean(value: float | None) -> str:
    """Return a mean with its significant digits: 0.25, 3.5, 1 024."""
    if value is None:
        return ""
    if value >= 100 or value == round(value):
        return f"{value:,.0f}".replace(",", _THIN)
    return f"{value:.2f}".rstrip("0").rstrip(".") if value < 10 else f"{value:.1f}"
