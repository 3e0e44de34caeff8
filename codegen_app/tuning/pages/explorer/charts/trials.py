"""Every trial as a point over order, seconds or a parameter; those without a time below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from codegen_app.tuning.charts import Figure, ManyPoints, build_figure
from codegen_app.tuning.pages.explorer.charts.axes import (
    round_6,
    shorten,
    time_axis,
    time_title,
    value_axis,
)
from codegen_app.tuning.pages.explorer.form import MODELLED, SECONDS, TRIED
from codegen_app.tuning.pages.explorer.model import Explorer, Trial
from scheduler.tuning.trials.parameters import Parameter

_MAX_INTERVALS = 200  # more would be unreadable; the table has them all
_GOLDEN_RATIO = (math.sqrt(5) - 1) / 2
_SPREAD = 0.56  # as a fraction of a column's width
_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "pentagon", "triangle-down")


def trials(explorer: Explorer, x: str, colour: str) -> Figure | None:
    """Return one point per trial: its time over ``x``, with the best so far if that is an order,
    and those without a time below, one row per outcome. None without a trial."""
    parameter = explorer.parameter(x)
    timed = [(at, trial) for at, trial in enumerate(explorer.trials) if trial.time_us is not None]
    timed = [(at, trial) for at, trial in timed if _has_x(trial, x)]
    failed = _untimed_trials(explorer, x, parameter)
    if not timed and not failed:
        return None
    groups: dict[int, list[tuple[int, Trial]]] = {}  # by the value of the parameter ``colour``
    coloured = explorer.parameter(colour)
    for at, trial in timed:
        groups.setdefault(coloured.codes[at] if coloured else 0, []).append((at, trial))
    traces: list[ManyPoints] = []
    for place, code in enumerate(sorted(groups)):
        name = shorten(f"{coloured.name}={coloured.values[code]}", 40) if coloured else "trial"
        traces.append(_points(explorer, name, groups[code], x, place))
    if x in (TRIED, SECONDS):
        traces.append(_best_line(explorer, x))
    states = sorted({point.state for point in failed})
    traces += [_untimed_trace(failed, state, at, x) for at, state in enumerate(states)]
    strip = min(0.4, 0.07 * len(states)) if timed else 1.0
    layout: Figure = {
        "xaxis": _x_axis(explorer, x) | {"anchor": "y2" if states else "y"},
        "yaxis": {"title": {"text": time_title(explorer)}, "domain": [strip + 0.03, 1.0]}
        | time_axis([trial.time_us for _, trial in timed if trial.time_us is not None]),
        "showlegend": True,
    }
    if states:
        layout["yaxis2"] = {
            "domain": [0.0, strip - 0.02],
            "range": [-0.6, len(states) - 0.4],
            "tickvals": list(range(len(states))),
            "ticktext": states,
            "zeroline": False,
        }
    if not timed:
        del layout["yaxis"]
    return build_figure(traces, layout)


def _has_x(trial: Trial, x: str) -> bool:
    needed = {TRIED: trial.order, SECONDS: trial.at_s, MODELLED: trial.modelled_us}
    return x not in needed or needed[x] is not None


def _x_value(trial: Trial, x: str) -> float:
    """Return a trial's position on an axis that is not a parameter."""
    value = {TRIED: trial.order, SECONDS: trial.at_s, MODELLED: trial.modelled_us}[x]
    assert value is not None, "only those are shown that have one"
    return round(float(value), 4)


def _x_axis(explorer: Explorer, x: str) -> Figure:
    """Return an axis of a parameter's values, else from the first position to the last, with a
    small margin."""
    if (parameter := explorer.parameter(x)) is not None:
        return {"title": {"text": shorten(x)}, **value_axis(parameter)}
    title = f"modelled time, µs: not measured, by a model of {explorer.modelled_where}"
    if x != MODELLED:
        title = f"trial: {explorer.ordered_by}" if x == TRIED else "seconds of the run"
    axis: Figure = {"title": {"text": title}, "zeroline": False}
    places = [_x_value(trial, x) for trial in explorer.trials if _has_x(trial, x)]
    if places:
        margin = 0.02 * (max(places) - min(places)) or 1.0
        axis["range"] = [min(places) - margin, max(places) + margin]
    return axis


def _points(
    explorer: Explorer, name: str, group: Sequence[tuple[int, Trial]], x: str, place: int
) -> ManyPoints:
    parameter = explorer.parameter(x)
    indices, rows = [at for at, _ in group], [trial for _, trial in group]
    symbol = _SYMBOLS[place % len(_SYMBOLS)]
    intervals = None
    if (explorer.times == "modelled" or explorer.most_n > 1) and explorer.timed <= _MAX_INTERVALS:
        times = [trial.time_us or 0.0 for trial in rows]
        highs = [trial.high_us or time for trial, time in zip(rows, times, strict=True)]
        lows = [trial.low_us or time for trial, time in zip(rows, times, strict=True)]
        intervals = {
            "type": "data",
            "symmetric": False,
            "thickness": 1,
            "width": 2,
            "array": [round_6(high - time) for high, time in zip(highs, times, strict=True)],
            "arrayminus": [round_6(time - low) for low, time in zip(lows, times, strict=True)],
        }
    trace = go.Scatter(
        name=f"{name} ({len(rows)})",
        mode="markers",
        error_y=intervals,
        marker={"size": 7, "symbol": symbol},
        hovertemplate="%{text}<br>%{y:.4g} µs<extra></extra>",
    )
    if parameter is None:
        xs = [_x_value(trial, x) for trial in rows]
    else:  # spread in each value's column by the golden ratio: consecutive trials are far apart
        counts = [0] * len(parameter.values)
        xs = []
        for at in indices:
            code = parameter.codes[at]
            counts[code] += 1
            xs.append(round(code + _SPREAD * ((counts[code] * _GOLDEN_RATIO) % 1.0 - 0.5), 3))
    values: dict[str, Any] = {
        "x": xs,
        "y": [round_6(trial.time_us) for trial in rows],
        "text": [trial.kernel for trial in rows],
        "customdata": indices,
    }
    # Thousands of equal sizes are sent as one; a list is only needed if a trial is the best.
    if any(trial.best for trial in rows):
        values["marker"] = {
            "size": [14 if trial.best else 7 for trial in rows],
            "symbol": ["star" if trial.best else symbol for trial in rows],
        }
    return ManyPoints(trace, values)


def _best_line(explorer: Explorer, x: str) -> ManyPoints:
    """Return the best so far: a step down at each trial faster than all before, extended to the
    last trial."""
    steps = [(best.order if x == TRIED else best.at_s, best.time_us) for best in explorer.best]
    steps = [(at, time) for at, time in steps if at is not None]
    ends = [trial.order if x == TRIED else trial.at_s for trial in explorer.trials]
    last = max((end for end in ends if end is not None), default=None)
    if steps and last is not None:
        steps.append((last, steps[-1][1]))
    trace = go.Scatter(
        name="best so far",
        mode="lines",
        line={"shape": "hv", "width": 1.5},
        hovertemplate="best so far: %{y:.4g} µs<extra></extra>",
        meta="best",
    )
    places = [round(float(at or 0.0), 4) for at, _ in steps]
    return ManyPoints(trace, {"x": places, "y": [round_6(time) for _, time in steps]})


@dataclass(frozen=True)
class _Untimed:
    """Trials without a time at one position; ``trial`` is the index of a single one."""

    state: str
    x: float
    count: int
    text: str
    trial: int | None = None


def _untimed_trials(explorer: Explorer, x: str, parameter: Parameter | None) -> list[_Untimed]:
    """Return over an order each trial separately, over a parameter the count of each value."""
    if parameter is not None:
        values = next((row.values for row in explorer.slices if row.name == x), ())
        return [
            _Untimed(state, float(code), count, shorten(f"{x}={value.value}: {count} {state}"))
            for code, value in enumerate(values)
            for state, count in value.group.others.items()
        ]
    rows: list[_Untimed] = []
    for at, trial in enumerate(explorer.trials):
        if trial.time_us is None and _has_x(trial, x) and trial.order is not None:
            text = f"{trial.kernel}: {trial.state}"
            if trial.stage:
                text = f"{text}<br>{trial.stage}: {shorten(trial.reason)}"
            rows.append(_Untimed(trial.state, _x_value(trial, x), 1, text, at))
    return rows


def _untimed_trace(untimed: Sequence[_Untimed], state: str, row: int, x: str) -> ManyPoints:
    points = [point for point in untimed if point.state == state]
    counted = any(point.count > 1 for point in points)
    trace = go.Scatter(
        name=f"{state} ({sum(point.count for point in points)})",
        mode="markers+text" if counted else "markers",
        yaxis="y2",
        marker={"symbol": "x-thin", "size": 7, "line": {"width": 1.5}},
        textposition="middle right",
        hovertemplate="%{hovertext}<extra></extra>",
        meta=f"failed:{state}",
        showlegend=False,
    )
    values: dict[str, Any] = {
        "x": [point.x for point in points],
        "y": [row] * len(points),
        "hovertext": [point.text for point in points],
    }
    if counted:
        values["text"] = [f" {point.count}" if point.count > 1 else "" for point in points]
    if x in (TRIED, SECONDS, MODELLED):
        values["customdata"] = [point.trial for point in points]
    return ManyPoints(trace, values)
