"""Figures as Plotly's JSON, without colours: the page's script adds the design tokens'."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import plotly.graph_objects as go

from codegen_app.tuning.queries.ledger import Curve
from codegen_app.tuning.queries.limits import LimitRow, Limits, MeasuredPoint

Figure = dict[str, Any]
_TERA = 1e12
_TIME_TITLES = {"": "median", "emulated": "median (emulated)", "modelled": "time (modelled)"}


def best_so_far(curves: Sequence[Curve], kind: str) -> Figure:
    """Return each problem's best time over the seconds of its run, as steps; both may be empty.
    ``kind`` is "emulated" or "modelled", "" for a median measured on a device."""
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
                "title": {"text": f"best {_TIME_TITLES.get(kind, kind)} µs"},
                "type": "log",  # without dtick an axis within one decade would have no label
            },
            "showlegend": False,
        },
    )
    if not figure.data:
        figure.add_annotation(text="no times yet", showarrow=False, xref="paper", yref="paper")
        figure.update_xaxes(visible=False)
        figure.update_yaxes(visible=False)
    return figure_json(figure)


def roofline(limits: Limits | None) -> Figure | None:
    """Return operations per second over operations per byte, both logarithmic: the roofs of each
    target's reference board and of measured boards, the problem's intensity, and measurements on
    GPUs. None without operations."""
    if limits is None:
        return None
    at = limits.intensity
    boards = [row for row in limits.boards if row.peak]
    if at is None or not boards:
        return None
    spread = [at, *(point.intensity for point in limits.points if point.intensity)]
    low, high = min(0.1, *spread) / 2, max(2000.0, *spread) * 2
    shown = [row for row in boards if row.reference or row.best or row.modelled]
    roofs: list[go.Scatter] = []
    for row in shown:  # the bandwidth up to the ridge, then the peak
        peak = row.peak or 0.0
        x = sorted({low, min(max(peak / row.bytes_per_s, low), high), high})
        roof = go.Scatter(
            name=f"{row.board} ({row.target})",
            mode="lines",
            x=x,
            y=[min(intensity * row.bytes_per_s, peak) / _TERA for intensity in x],
            line={"width": 1.5},
            hovertemplate=f"{row.board}: {row.bytes_per_s / _TERA:.3g} TB/s,"
            f" {peak / _TERA:.4g} T operations per second<extra></extra>",
        )
        roofs.append(roof)
    tops = [(min(at * row.bytes_per_s, row.peak or 0) / _TERA, row) for row in shown]
    tops.sort(key=itemgetter(0))
    limits_here = go.Scatter(
        name=f"this problem: {at:.3g} operations per byte",
        mode="lines+markers",
        x=[at] * len(shown),
        y=[top for top, _ in tops],
        line={"dash": "dot", "width": 1},
        marker={"symbol": "diamond-open", "size": 8},
        text=[f"{row.board}: at least {row.least_ns / 1000:.4g} µs" for _, row in tops],
        hovertemplate="%{text}<br>at most %{y:.3g} T per second<extra></extra>",
    )
    decades = {"type": "log", "dtick": 1}
    figure = go.Figure(
        [
            *roofs,
            limits_here,
            *_measured_points(limits.points),
            *_modelled_points(at, shown),
        ],
        {
            "xaxis": {"title": {"text": "operations per byte"}, **decades},
            "yaxis": {"title": {"text": f"10¹² {limits.dtype} operations per second"}, **decades},
            "showlegend": True,
        },
    )
    return figure_json(figure)


def _measured_points(points: Sequence[MeasuredPoint]) -> list[go.Scatter]:
    """Return one trace per device; a point links to its kernel."""
    devices: dict[str, list[MeasuredPoint]] = {}
    for point in points:
        if point.operations_per_s:
            devices.setdefault(point.device, []).append(point)
    return [
        go.Scatter(
            name=f"measured on {device}",
            mode="markers",
            x=[point.intensity for point in device_points],
            y=[(point.operations_per_s or 0.0) / _TERA for point in device_points],
            marker={"size": 9, "symbol": "circle"},
            text=[f"{point.kernel}<br>{point.time.value / 1000:.4g} µs" for point in device_points],
            customdata=[point.url for point in device_points],
            hovertemplate="%{text}<extra></extra>",
        )
        for device, device_points in sorted(devices.items())
    ]


def _modelled_points(at: float, rows: Sequence[LimitRow]) -> list[go.Scatter]:
    """Return the kernel's modelled performance: hollow crosses, unlike measurements."""
    modelled = [
        (row, row.modelled) for row in rows if row.modelled and row.modelled.operations_per_s
    ]
    if not modelled:
        return []
    return [
        go.Scatter(
            name="modelled",
            mode="markers",
            x=[at] * len(modelled),
            y=[(time.operations_per_s or 0.0) / _TERA for _, time in modelled],
            marker={"size": 10, "symbol": "cross-open"},
            text=[
                f"modelled on {row.board}<br>{time.time_ns / 1000:.4g} µs,"
                f" {100 * (time.roofline or 0.0):.0f}% of the board's limit"
                for row, time in modelled
            ],
            customdata=[time.url for _, time in modelled],
            hovertemplate="%{text}<extra></extra>",
        )
    ]


@dataclass(frozen=True)
class ManyPoints:
    """A trace whose lists bypass Plotly, which checks each of thousands of values twice. ``values``
    are by Plotly's names; a mapping among them has its own lists (``marker``)."""

    trace: Any
    values: Mapping[str, Any]


def build_figure(traces: Sequence[ManyPoints], layout: Figure) -> Figure:
    """Return a figure of traces with their lists, as JSON."""
    figure = figure_json(go.Figure([points.trace for points in traces], layout))
    for drawn, points in zip(figure["data"], traces, strict=True):
        for name, values in points.values.items():
            drawn[name] = (
                {**drawn.get(name, {}), **values} if isinstance(values, Mapping) else values
            )
    return figure


def figure_json(figure: go.Figure) -> Figure:
    """Return the figure's JSON without Plotly's template, which is large and has colours."""
    content: Figure = json.loads(figure.to_json())
    content["layout"].pop("template", None)
    return content
