"""Box plots for each value of each parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from codegen_app.tuning.charts import Figure, figure_json
from codegen_app.tuning.pages.explorer.charts.axes import (
    group_summary,
    round_6,
    shorten,
    time_axis,
    time_title,
    value_axis,
)
from codegen_app.tuning.pages.explorer.model import Explorer
from scheduler.tuning.trials.slices import TrialGroup


def slices(explorer: Explorer) -> Figure | None:
    """Return a box per value: minimum, quartiles and maximum of its trials' times, with the number
    of trials and of those without a time; a column of boxes per parameter. None without any
    time."""
    shown = [row for row in explorer.slices if any(value.group.n for value in row.values)]
    if not shown:
        return None
    widths = [len(row.values) + 0.6 for row in shown]
    total, start = sum(widths), 0.0
    traces: list[Any] = []
    times = [trial.time_us for trial in explorer.trials if trial.time_us is not None]
    layout: Figure = {
        "yaxis": {"title": {"text": time_title(explorer)}} | time_axis(times),
        "showlegend": False,
        "meta": {"columns": total},
    }
    for place, (row, width) in enumerate(zip(shown, widths, strict=True)):
        suffix = "" if place == 0 else str(place + 1)
        layout[f"xaxis{suffix}"] = {
            "title": {"text": shorten(row.name)},
            "domain": [start / total, (start + width - 0.4) / total],
            "anchor": "y",
            "fixedrange": True,
        } | value_axis(explorer.parameter(row.name))
        start += width
        boxed = [(code, value.group) for code, value in enumerate(row.values) if value.group.median]
        traces += [
            _box(row.name, boxed, f"x{suffix}"),
            _counts(row.name, list(enumerate(row.values)), times, f"x{suffix}"),
        ]
    return figure_json(go.Figure(traces, layout))


def _box(name: str, groups: Sequence[tuple[int, TrialGroup]], axis: str) -> go.Box:
    ends = ("best", "lower", "median", "upper", "worst")
    low, lower, median, upper, high = (
        [round_6(getattr(g, end)) for _, g in groups] for end in ends
    )
    return go.Box(
        name=shorten(name),
        x=[code for code, _ in groups],
        lowerfence=low,
        q1=lower,
        median=median,
        q3=upper,
        upperfence=high,
        xaxis=axis,
        line={"width": 1},
        hoverinfo="y",
        meta=f"slice:{name}",
    )


def _counts(name: str, values: Sequence[tuple[int, Any]], every: Sequence[float], axis: str) -> Any:
    """Return the number of trials of each box and of those without a time, above all boxes."""
    texts: list[str] = []
    for _, value in values:
        failed = sum(value.group.others.values())
        texts.append(f"{value.group.n}" + (f"<br>✕{failed}" if failed else ""))
    return go.Scatter(
        mode="text",
        x=[code for code, _ in values],
        y=[round_6(max(every) * 1.02)] * len(values),
        text=texts,
        textposition="top center",
        cliponaxis=False,
        xaxis=axis,
        hovertext=[
            f"{shorten(name + '=' + value.value)}: {group_summary(value.group)}"
            for _, value in values
        ],
        hovertemplate="%{hovertext}<extra></extra>",
        meta=f"count:{name}",
    )
