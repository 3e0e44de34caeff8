"""Figures as Plotly's JSON, without colours: the page's script takes those from the tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from codegen_app.forms.axes import LANGUAGE_AXIS, MEASURED, MODELLED
from codegen_app.selectors.ledger import Curve
from codegen_app.selectors.pages.limits import LimitRow, Limits, Point
from codegen_app.selectors.pages.node import CandidateRow

POSITION = "order"
UNNAMED = "not named"
Figure = dict[str, Any]


def axes(rows: Sequence[CandidateRow]) -> tuple[str, ...]:
    """What a chart of candidates can have as X or colour: parameters that differ (not to name one
    differs too), and the order."""
    names = [LANGUAGE_AXIS, *sorted({name for row in rows for name in row.config})]
    return (POSITION, *(name for name in names if len({_value(row, name) for row in rows}) > 1))


def _value(row: CandidateRow, name: str) -> str:
    """A candidate's parameter as text; ``UNNAMED`` where it leaves that to the kernel."""
    return row.language if name == LANGUAGE_AXIS else str(row.config.get(name, UNNAMED))


def times(rows: Sequence[CandidateRow]) -> tuple[str, ...]:
    """Which times there are of candidates; what is measured is meant where there are none."""
    found = [MEASURED] if any(row.timing for row in rows) else []
    found += [MODELLED] if any(row.modelled for row in rows) else []
    return tuple(found) or (MEASURED,)


def candidates(
    rows: Sequence[CandidateRow], x: str, colour: str, y: str = MEASURED, where: str = ""
) -> Figure | None:
    """Times in microseconds, one point a candidate: medians with their intervals, or, with ``y``,
    modelled ones with their bands (``where`` is the board that these are of); None without any.

    The kernel that serves is a star, the others are dots; a point leads to its kernel.
    """
    timed = [row for row in rows if (row.modelled if y == MODELLED else row.timing) is not None]
    timed = [row for row in timed if x != MODELLED or row.modelled is not None]
    if not timed:
        return None
    groups: dict[str, list[CandidateRow]] = {}
    for row in timed:
        groups.setdefault(_value(row, colour) if colour else "", []).append(row)
    ordered = sorted(groups.items(), key=_key)
    traces = [_trace(name, group, x, colour, y) for name, group in ordered]
    emulated = any(row.timing.emulated for row in timed if row.timing)
    measured = "median µs" + (" (emulated)" if emulated else "")
    modelled = f"µs modelled on {where}"
    figure = go.Figure(
        traces,
        {
            "xaxis": _time_axis(modelled) if x == MODELLED else _axis(timed, x),
            "yaxis": _time_axis(modelled if y == MODELLED else measured),
            "showlegend": bool(colour),
        },
    )
    return _plain(figure)


_WORDS = {"": "median", "emulated": "median (emulated)", "modelled": "time (modelled)"}


def best_so_far(curves: Sequence[Curve], kind: str) -> Figure:
    """Best time of each problem over the seconds of its run, as steps; both may be empty. ``kind``
    is "emulated" or "modelled", "" for a median that a device took."""
    figure = go.Figure(
        [
            go.Scatter(
                name=f"{curve.node} {curve.problem}",
                mode="lines+markers",
                line={"shape": "hv", "width": 1.5},
                marker={"size": 5},
                x=[point.at_s for point in curve.points],
                y=[point.best_ns / 1000 for point in curve.points],
                text=[f"{curve.node}: {point.tried} tried" for point in curve.points],
                hovertemplate="%{text}<br>%{x:.1f} s, %{y:.4g} µs<extra></extra>",
            )
            for curve in curves
            if curve.points
        ],
        {
            "xaxis": {"title": {"text": "seconds of the run"}, "rangemode": "nonnegative"},
            "yaxis": {
                "title": {"text": f"best {_WORDS.get(kind, kind)} µs"},
                "type": "log",  # no dtick: within one decade the axis would have no figure at all
            },
            "showlegend": False,
        },
    )
    return _plain(figure)


def roofline(found: Limits | None) -> Figure | None:
    """Operations a second over operations a byte, both logarithmic: the roofs of each target's
    reference board and of boards that were measured on, where the problem stands under them, and
    what was measured on GPUs. None without operations."""
    if found is None:
        return None
    at = found.intensity
    boards = [row for row in found.boards if row.peak]
    if at is None or not boards:
        return None
    spread = [at, *(point.intensity for point in found.points if point.intensity)]
    low, high = min(0.1, *spread) / 2, max(2000.0, *spread) * 2
    shown = [row for row in boards if row.reference or row.best]
    tops = [min(at * row.bytes_per_s, row.peak or 0) / _TERA for row in shown]
    here = go.Scatter(
        name=f"this problem: {at:.3g} operations a byte",
        mode="lines+markers",
        x=[at] * len(shown),
        y=sorted(tops),
        line={"dash": "dot", "width": 1},
        marker={"symbol": "diamond-open", "size": 8},
        text=[
            f"{row.board}: at least {row.least_ns / 1000:.4g} µs" for row in _by_top(shown, tops)
        ],
        hovertemplate="%{text}<br>at most %{y:.3g} T a second<extra></extra>",
    )
    decades = {"type": "log", "dtick": 1}
    figure = go.Figure(
        [*(_ceiling(row, low, high) for row in shown), here, *_measured(found.points)],
        {
            "xaxis": {"title": {"text": "operations a byte"}, **decades},
            "yaxis": {"title": {"text": f"10¹² {found.dtype} operations a second"}, **decades},
            "showlegend": True,
        },
    )
    return _plain(figure)


def _by_top(rows: Sequence[LimitRow], tops: Sequence[float]) -> list[LimitRow]:
    return [row for _, row in sorted(zip(tops, rows, strict=True), key=lambda pair: pair[0])]


_TERA = 1e12


def _ceiling(row: LimitRow, low: float, high: float) -> go.Scatter:
    """Bandwidth up to the ridge, then the peak."""
    peak = row.peak or 0.0
    ridge = peak / row.bytes_per_s
    x = sorted({low, min(max(ridge, low), high), high})
    return go.Scatter(
        name=f"{row.board} ({row.target})",
        mode="lines",
        x=x,
        y=[min(each * row.bytes_per_s, peak) / _TERA for each in x],
        line={"width": 1.5},
        hovertemplate=f"{row.board}: {row.bytes_per_s / _TERA:.3g} TB/s,"
        f" {peak / _TERA:.4g} T operations a second<extra></extra>",
    )


def _measured(points: Sequence[Point]) -> list[go.Scatter]:
    """One trace a device; a point leads to its kernel."""
    devices: dict[str, list[Point]] = {}
    for point in points:
        if point.operations_per_s:
            devices.setdefault(point.device, []).append(point)
    return [
        go.Scatter(
            name=f"measured on {device}",
            mode="markers",
            x=[point.intensity for point in found],
            y=[(point.operations_per_s or 0.0) / _TERA for point in found],
            marker={"size": 9, "symbol": "circle"},
            text=[f"{point.kernel}<br>{point.time.value / 1000:.4g} µs" for point in found],
            customdata=[point.url for point in found],
            hovertemplate="%{text}<extra></extra>",
        )
        for device, found in sorted(devices.items())
    ]


def _time_axis(title: str) -> Figure:
    return {"title": {"text": title}, "rangemode": "nonnegative"}


def _times_of(rows: Sequence[CandidateRow], of: str) -> list[tuple[float, float, float]]:
    """Low end, time and high end of each in microseconds."""
    if of == MODELLED:
        found = (row.modelled for row in rows)
        return [(one.low_us, one.time_us, one.high_us) for one in found if one is not None]
    timings = [row.timing.time for row in rows if row.timing is not None]
    return [(one.low / 1000, one.value / 1000, one.high / 1000) for one in timings]


def _bars(found: Sequence[tuple[float, float, float]]) -> Figure:
    return {
        "type": "data",
        "symmetric": False,
        "array": [high - value for _, value, high in found],
        "arrayminus": [value - low for low, value, _ in found],
    }


def _trace(name: str, rows: Sequence[CandidateRow], x: str, colour: str, y: str) -> go.Scatter:
    on_y = _times_of(rows, y)
    on_x = _times_of(rows, MODELLED) if x == MODELLED else []
    plain = [row.position if x == POSITION else _point(row, x) for row in rows]
    return go.Scatter(
        name=f"{colour}={name}" if colour else "candidates",
        mode="markers",
        x=[value for _, value, _ in on_x] if on_x else plain,
        y=[value for _, value, _ in on_y],
        error_x=_bars(on_x) if on_x else None,
        error_y=_bars(on_y),
        marker={
            "size": [13 if row.selected else 7 for row in rows],
            "symbol": ["star" if row.selected else "circle" for row in rows],
        },
        text=[row.kernel for row in rows],
        customdata=[row.url for row in rows],
        hovertemplate="%{text}<br>%{y:.4g} µs"
        + (", modelled %{x:.4g} µs" if on_x else "")
        + "<extra></extra>",
    )


def _point(row: CandidateRow, x: str) -> Any:
    return row.language if x == LANGUAGE_AXIS else row.config.get(x, UNNAMED)


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
