"""The columns of figures beside the lines of a listing, and the heads above all columns."""

from __future__ import annotations

from django.utils.html import escape

from codegen_app.kernels.modelled.view import InstructionRow, ModelledView, display_name
from codegen_app.kernels.queries.listing import ListingView


def source_head(modelled: ModelledView | None) -> str:
    """Return the heads of the source's columns."""
    heat = ""
    if modelled:
        heat = _cell("heat", "stall", f"% of all stall cycles, modelled on {modelled.where}")
    return f'<div class="cols">{_cell("n", "line")}{heat}{_cell("t", "source")}</div>'


def listing_head(view: ListingView, modelled: ModelledView | None) -> str:
    """Return the heads of a listing's columns."""
    figures = ""
    if modelled is not None:
        where = f"modelled on {modelled.where}, per wave of launch {modelled.shown.number}"
        figures = "".join(
            _cell(f"m {css}", name, f"{where}: {title}") for css, name, title in _COLUMNS
        )
    registers = view.registers if view.follows_registers else ""
    cells = (
        _cell("n", "line"),
        _cell("x", "source", "a bar for each enclosing loop; the source line"),
        _cell("live", "live" if registers else "", f"live {registers}" if registers else ""),
        _cell("h", "header", "header of the inlined code") if view.headers else "",
        figures,
        _cell("t", "instruction"),
    )
    return f'<div class="cols">{"".join(cells)}</div>'


def _cell(css: str, name: str, title: str = "") -> str:
    tooltip = f' title="{escape(title)}"' if title else ""
    return f'<span class="{css}"{tooltip}>{escape(name)}</span>'


_COLUMNS = (
    ("m-runs", "runs", "number of executions"),
    ("m-stall", "stall", "stall cycles before the instruction"),
    ("m-bank", "LDS\N{MULTIPLICATION SIGN}", "bank conflict factor"),
    ("m-bytes", "bytes", "bytes used / bytes moved per execution"),
)
_EMPTY_CELLS = "".join(f'<span class="m {css}"></span>' for css, _, _ in _COLUMNS)


def line_figures(row: InstructionRow | None, modelled: ModelledView | None) -> tuple[str, str]:
    """Return the figures of a line of the listing, and their title."""
    if modelled is None:
        return "", ""
    if row is None:
        return _EMPTY_CELLS, ""
    moved = (
        f"{format_mean(row.bytes_used)}/{format_mean(row.bytes_moved)}" if row.bytes_moved else ""
    )
    is_wasteful = bool(row.bytes_moved and (row.bytes_used or 0) < row.bytes_moved / 2)
    conflict = f"{row.conflict:.2f}" if row.conflict is not None else ""
    bad = row.conflict is not None and row.conflict > _FREE_OF_CONFLICTS
    cells = (
        f'<span class="m m-runs">{format_mean(row.executed)}</span>'
        f'<span class="m m-stall">{format_mean(row.stall) if row.stall else ""}</span>'
        f'<span class="m m-bank{" bad" if bad else ""}">{conflict}</span>'
        f'<span class="m m-bytes{" bad" if is_wasteful else ""}">{moved}</span>'
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
