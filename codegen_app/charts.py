"""Figures as Plotly's JSON, without colours: the page's script takes those from the tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from codegen_app.selectors.pages.node import CandidateRow

POSITION = "order"
Figure = dict[str, Any]


def axes(rows: Sequence[CandidateRow]) -> tuple[str, ...]:
    """What a chart of candidates can have as X or colour: parameters that differ, and the order."""
    values: dict[str, set[str]] = {}
    for row in rows:
        for name, value in row.config.items():
            values.setdefault(name, set()).add(str(value))
    return (POSITION, *(name for name, seen in sorted(values.items()) if len(seen) > 1))


def chosen(asked: str | None, allowed: Sequence[str], default: str = POSITION) -> str:
    """The axis that was asked for, where there is one of that name."""
    return asked if asked is not None and asked in allowed else default


def candidates(rows: Sequence[CandidateRow], x: str, colour: str) -> Figure | None:
    """Median times in microseconds with their intervals, one point a candidate; None without any.

    The kernel that serves is a star, the others are dots; a point leads to its kernel.
    """
    timed = [row for row in rows if row.timing is not None]
    if not timed:
        return None
    groups: dict[str, list[CandidateRow]] = {}
    for row in timed:
        groups.setdefault(str(row.config.get(colour, "")) if colour else "", []).append(row)
    traces = [_trace(name, group, x, colour) for name, group in sorted(groups.items(), key=_key)]
    emulated = any(row.timing.emulated for row in timed if row.timing)
    figure = go.Figure(
        traces,
        {
            "xaxis": _axis(timed, x),
            "yaxis": {"title": {"text": "median µs" + (" (emulated)" if emulated else "")}},
            "showlegend": bool(colour),
        },
    )
    return _plain(figure)


def _trace(name: str, rows: Sequence[CandidateRow], x: str, colour: str) -> go.Scatter:
    timings = [row.timing for row in rows if row.timing is not None]
    return go.Scatter(
        name=f"{colour}={name}" if colour else "candidates",
        mode="markers",
        x=[row.position if x == POSITION else row.config.get(x) for row in rows],
        y=[timing.median_ns / 1000 for timing in timings],
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [(timing.high_ns - timing.median_ns) / 1000 for timing in timings],
            "arrayminus": [(timing.median_ns - timing.low_ns) / 1000 for timing in timings],
        },
        marker={
            "size": [13 if row.serves else 7 for row in rows],
            "symbol": ["star" if row.serves else "circle" for row in rows],
        },
        text=[row.kernel for row in rows],
        customdata=[row.url for row in rows],
        hovertemplate="%{text}<br>%{y:.4g} µs<extra></extra>",
    )


def _key(group: tuple[str, Sequence[CandidateRow]]) -> tuple[bool, float, str]:
    name = group[0]
    try:
        return (False, float(name), name)
    except ValueError:
        return (True, 0.0, name)


def _axis(rows: Sequence[CandidateRow], x: str) -> Figure:
    """Numbers on a line, anything else in columns; never a tick between two whole numbers."""
    axis: Figure = {"title": {"text": x}}
    if not _numeric(rows, x):
        return axis | {"type": "category"}
    values = {row.position if x == POSITION else row.config[x] for row in rows}
    if len(values) <= _FEW:
        return axis | {"type": "linear", "tickmode": "array", "tickvals": sorted(values)}
    return axis | {"type": "linear", "tickformat": "d"}


_FEW = 12  # ticks that have room


def _numeric(rows: Sequence[CandidateRow], x: str) -> bool:
    return x == POSITION or all(
        isinstance(row.config.get(x), int) and not isinstance(row.config.get(x), bool)
        for row in rows
    )


def _plain(figure: go.Figure) -> Figure:
    """The figure's JSON without Plotly's own template, which is large and brings colours."""
    plain: Figure = json.loads(figure.to_json())
    plain["layout"].pop("template", None)
    return plain
