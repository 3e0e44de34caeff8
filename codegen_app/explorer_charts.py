"""The explorer's figures as Plotly's JSON, without colours: the script takes those from the tokens.

Values of a parameter stand at equal distances, as columns: 32, 64, 128 are three choices. Points
that would cover each other are spread within their column, the same way each time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from codegen_app.charts import Figure, plain
from codegen_app.forms.explorer import MODELLED, SECONDS, TRIED
from codegen_app.selectors.explorer.make import MEDIAN
from codegen_app.selectors.explorer.model import Explorer, Trial
from scheduler.tuning.trials.parameters import UNNAMED, Parameter
from scheduler.tuning.trials.slices import Group

_WORDS = {"measured": "median", "emulated": "emulated median", "modelled": "modelled time"}
_MOST_INTERVALS = 200  # more of them are a blot; the table has them all
_DECADE = 10.0  # between the least and the largest time, from which on the axis is logarithmic
_GOLDEN = (math.sqrt(5) - 1) / 2
_SPREAD = 0.56  # of a column's width
_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "pentagon", "triangle-down")


def time_title(found: Explorer) -> str:
    """The title of an axis of time: what it is, its unit, and of which device at which sizes."""
    sizes = " ".join(f"{name}={value}" for name, value in found.sizes.items())
    return f"{_WORDS[found.times]}, µs" + (f" at {sizes}" if sizes else "")


def trials(found: Explorer, x: str, colour: str) -> Figure | None:
    """One point a trial: its time over ``x``, with the best so far where that is an order, and
    those without a time below, a row for each thing that became of them. None without a trial."""
    parameter = found.parameter(x)
    timed = [(at, one) for at, one in enumerate(found.trials) if one.time_us is not None]
    timed = [(at, one) for at, one in timed if _has_place(one, x)]
    failed = _failed(found, x, parameter)
    if not timed and not failed:
        return None
    groups = _groups(found.parameter(colour), timed)
    traces = [_points(found, name, group, x, place) for place, (name, group) in enumerate(groups)]
    if x in (TRIED, SECONDS):
        traces.append(_best_line(found, x))
    states = sorted({state for state, *_ in failed})
    traces += [_failures(failed, state, at, x) for at, state in enumerate(states)]
    strip = min(0.4, 0.07 * len(states)) if timed else 1.0
    layout: Figure = {
        "xaxis": {"title": {"text": _x_title(found, x)}, "anchor": "y2" if states else "y"}
        | (_columns(parameter) if parameter else _span(found, x)),
        "yaxis": {"title": {"text": time_title(found)}, "domain": [strip + 0.03, 1.0]}
        | _scale([one.time_us for _, one in timed if one.time_us is not None]),
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
    return plain(go.Figure(traces, layout))


def _has_place(one: Trial, x: str) -> bool:
    needed = {TRIED: one.order, SECONDS: one.at_s, MODELLED: one.modelled_us}
    return x not in needed or needed[x] is not None


def _place(one: Trial, x: str) -> float:
    """Where a trial stands on an axis that is no parameter's."""
    found = {TRIED: one.order, SECONDS: one.at_s, MODELLED: one.modelled_us}[x]
    assert found is not None, "only those are shown that have one"
    return round(float(found), 4)


def _span(found: Explorer, x: str) -> Figure:
    """From the first place to the last, with a little room."""
    places = [_place(one, x) for one in found.trials if _has_place(one, x)]
    if not places:
        return {"zeroline": False}
    room = 0.02 * (max(places) - min(places)) or 1.0
    return {"range": [min(places) - room, max(places) + room], "zeroline": False}


def _x_title(found: Explorer, x: str) -> str:
    if x == TRIED:
        return f"trial: {found.ordered_by}"
    if x == SECONDS:
        return "seconds of the run"
    if x != MODELLED:
        return _short(x)
    return f"modelled time, µs: not measured, by a model of {found.modelled_where}"


def _groups(
    colour: Parameter | None, timed: Sequence[tuple[int, Trial]]
) -> list[tuple[str, list[tuple[int, Trial]]]]:
    """The trials by a parameter's values, in their order; one group without it."""
    if colour is None:
        return [("trial", list(timed))] if timed else []
    found: dict[int, list[tuple[int, Trial]]] = {}
    for at, one in timed:
        found.setdefault(colour.codes[at], []).append((at, one))
    return [
        (_short(f"{colour.name}={colour.values[code]}", 40), found[code]) for code in sorted(found)
    ]


def _columned(parameter: Parameter, ats: Sequence[int]) -> list[float]:
    """Places of trials within their values' columns: spread by the golden ratio, so that
    neighbours in their order lie far from each other."""
    counts = [0] * len(parameter.values)
    places = []
    for at in ats:
        code = parameter.codes[at]
        counts[code] += 1
        places.append(round(code + _SPREAD * ((counts[code] * _GOLDEN) % 1.0 - 0.5), 3))
    return places


def _points(
    found: Explorer, name: str, group: Sequence[tuple[int, Trial]], x: str, place: int
) -> go.Scatter:
    parameter = found.parameter(x)
    rows = [one for _, one in group]
    ats = [at for at, _ in group]
    shown = _columned(parameter, ats) if parameter else [_place(one, x) for one in rows]
    symbol = _SYMBOLS[place % len(_SYMBOLS)]
    several = found.times == "modelled" or found.most_n > 1
    return go.Scatter(
        name=f"{name} ({len(rows)})",
        mode="markers",
        x=shown,
        y=[_digits(one.time_us) for one in rows],
        error_y=_intervals(rows) if several and found.timed <= _MOST_INTERVALS else None,
        marker={
            "size": [14 if one.best else 7 for one in rows],
            "symbol": ["star" if one.best else symbol for one in rows],
        },
        text=[one.kernel for one in rows],
        customdata=ats,
        hovertemplate="%{text}<br>%{y:.4g} µs<extra></extra>",
    )


def _intervals(rows: Sequence[Trial]) -> Figure:
    ends = [
        (one.time_us or 0.0, one.low_us or one.time_us, one.high_us or one.time_us) for one in rows
    ]
    return {
        "type": "data",
        "symmetric": False,
        "thickness": 1,
        "width": 2,
        "array": [_digits((high or time) - time) for time, _, high in ends],
        "arrayminus": [_digits(time - (low or time)) for time, low, _ in ends],
    }


def _best_line(found: Explorer, x: str) -> go.Scatter:
    """Steps down at each trial that was faster than all before, then on to the last trial."""
    steps = [(one.order if x == TRIED else one.at_s, one.time_us) for one in found.best]
    steps = [(at, time) for at, time in steps if at is not None]
    ends = [one.order if x == TRIED else one.at_s for one in found.trials]
    last = max((end for end in ends if end is not None), default=None)
    if steps and last is not None:
        steps.append((last, steps[-1][1]))
    return go.Scatter(
        name="best so far",
        mode="lines",
        line={"shape": "hv", "width": 1.5},
        x=[round(float(at or 0.0), 4) for at, _ in steps],
        y=[_digits(time) for _, time in steps],
        hovertemplate="best so far: %{y:.4g} µs<extra></extra>",
        meta="best",
    )


_Failed = tuple[str, float, int, str, int | None]


def _failed(found: Explorer, x: str, parameter: Parameter | None) -> list[_Failed]:
    """State, place, count, what is said of it, and the trial where it is one: over an order each by
    itself, over a parameter the count of each value."""
    if parameter is not None:
        values = next((one.values for one in found.slices if one.name == x), ())
        return [
            (state, float(code), count, _short(f"{x}={value.value}: {count} {state}"), None)
            for code, value in enumerate(values)
            for state, count in value.group.others.items()
        ]
    return [
        (one.state, _place(one, x), 1, _why(one), at)
        for at, one in enumerate(found.trials)
        if one.time_us is None and _has_place(one, x) and one.order is not None
    ]


def _why(one: Trial) -> str:
    """The stage and reason of a trial without a time, short enough to hover."""
    text = f"{one.kernel}: {one.state}"
    return f"{text}<br>{one.stage}: {_short(one.reason)}" if one.stage else text


def _short(text: str, most: int = 90) -> str:
    """Cut, and as text: Plotly reads a little HTML, and names are of whoever made the file."""
    cut = text if len(text) <= most else f"{text[: most - 1]}…"
    return cut.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _failures(failed: Sequence[_Failed], state: str, row: int, x: str) -> go.Scatter:
    own = [one for one in failed if one[0] == state]
    counted = any(count > 1 for _, _, count, _, _ in own)
    return go.Scatter(
        name=f"{state} ({sum(one[2] for one in own)})",
        mode="markers+text" if counted else "markers",
        x=[one[1] for one in own],
        y=[row] * len(own),
        yaxis="y2",
        marker={"symbol": "x-thin", "size": 7, "line": {"width": 1.5}},
        text=[f" {one[2]}" if one[2] > 1 else "" for one in own] if counted else None,
        textposition="middle right",
        hovertext=[one[3] for one in own],
        hovertemplate="%{hovertext}<extra></extra>",
        customdata=[one[4] for one in own] if x in (TRIED, SECONDS, MODELLED) else None,
        meta=f"failed:{state}",
        showlegend=False,
    )


def linked(found: Explorer, x: str) -> dict[str, Any]:
    """What the script links plots and table by, and draws parallel coordinates of: the trials as
    columns, the parameters with the trials' values, and what the table calls each axis; ``x`` is
    that of the plot of trials."""
    first = found.trials[0] if found.trials else None
    node = f"node=={found.node}".lower() if len(found.nodes) > 1 else ""
    return {
        "rows": [one.row for one in found.trials],
        "times": [_digits(one.time_us) for one in found.trials],
        "tried": [one.order is not None for one in found.trials],
        "kernels": [one.kernel for one in found.trials],
        "url": first.url.replace(first.kernel, "*") if first else "",
        "title": time_title(found),
        "node": node,
        "x": x,
        "axes": {
            TRIED: "position" if found.times == MODELLED and not found.nodes else "tried",
            SECONDS: "seconds",
            MODELLED: "modelled",
            "time": "modelled" if found.times == MODELLED else "median",
            "state": "outcome",
        },
        "parameters": [
            {
                "name": one.name,
                "key": found.keys[one.name],
                "values": one.values,
                "codes": one.codes,
                "number": one.is_number and UNNAMED not in one.values,
            }
            for one in found.parameters
        ],
    }


def slices(found: Explorer) -> Figure | None:
    """A box a value: least, quartiles and most of its trials' times, with how many there are, and
    of how many nothing came; a column of boxes a parameter. None without any time."""
    shown = [one for one in found.slices if any(value.group.n for value in one.values)]
    if not shown:
        return None
    widths = [len(one.values) + 0.6 for one in shown]
    total, left = sum(widths), 0.0
    traces: list[Any] = []
    every = [one.time_us for one in found.trials if one.time_us is not None]
    layout: Figure = {
        "yaxis": {"title": {"text": time_title(found)}} | _scale(every),
        "showlegend": False,
        "meta": {"columns": total},
    }
    for place, (one, width) in enumerate(zip(shown, widths, strict=True)):
        suffix = "" if place == 0 else str(place + 1)
        domain = [left / total, (left + width - 0.4) / total]
        left += width
        parameter = found.parameter(one.name)
        layout[f"xaxis{suffix}"] = {
            "title": {"text": _short(one.name)},
            "domain": domain,
            "anchor": "y",
            "fixedrange": True,
        } | _columns(parameter)
        boxed = [(code, value.group) for code, value in enumerate(one.values) if value.group.median]
        traces += [
            _box(one.name, boxed, f"x{suffix}"),
            _counts(one.name, list(enumerate(one.values)), every, f"x{suffix}"),
        ]
    return plain(go.Figure(traces, layout))


def _box(name: str, groups: Sequence[tuple[int, Group]], axis: str) -> go.Box:
    ends = ("best", "lower", "median", "upper", "worst")
    low, lower, median, upper, high = (
        [_digits(getattr(g, end)) for _, g in groups] for end in ends
    )
    return go.Box(
        name=_short(name),
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
    """How many trials a box is of, and how many have no time, above all boxes."""
    return go.Scatter(
        mode="text",
        x=[code for code, _ in values],
        y=[_digits(max(every) * 1.02)] * len(values),
        text=[_counted(value.group) for _, value in values],
        textposition="top center",
        cliponaxis=False,
        xaxis=axis,
        hovertext=[
            f"{_short(name + '=' + value.value)}: {_in_words(value.group)}" for _, value in values
        ],
        hovertemplate="%{hovertext}<extra></extra>",
        meta=f"count:{name}",
    )


def _counted(one: Group) -> str:
    failed = sum(one.others.values())
    return f"{one.n}" + (f"<br>✕{failed}" if failed else "")


def _in_words(one: Group) -> str:
    others = ", ".join(f"{count} {state}" for state, count in one.others.items())
    timed = f"n = {one.n}"
    if one.best is not None and one.median is not None:
        timed += f", best {one.best:.4g} µs, median {one.median:.4g} µs"
    return timed + (f"; without a time: {others}" if others else "")


def grid(found: Explorer) -> Figure | None:
    """Two parameters: a cell's best (or median) time with its n; None where there are no two."""
    if found.grid is None:
        return None
    shown = found.grid
    is_median = found.cell == MEDIAN

    def value(cell: Group | None) -> float | None:
        return None if cell is None else cell.median if is_median else cell.best

    times = [[value(cell) for cell in row] for row in shown.cells]
    known = [time for row in times for time in row if time is not None]
    if not known:
        return None
    heat = go.Heatmap(
        x=list(range(len(shown.columns))),
        y=list(range(len(shown.rows))),
        z=[[None if time is None else round(math.log10(time), 5) for time in row] for row in times],
        text=[[_cell_text(cell, value(cell)) for cell in row] for row in shown.cells],
        customdata=[
            ["nothing tried" if cell is None else _in_words(cell) for cell in row]
            for row in shown.cells
        ],
        texttemplate="%{text}",
        hovertemplate=f"{_short(shown.across)} %{{x}}, {_short(shown.down)} %{{y}}"
        "<br>%{customdata}<extra></extra>",
        hoverongaps=True,
        xgap=2,
        ygap=2,
        showscale=False,  # Plotly's is styled inline, which the policy forbids; cells have figures
    )
    # A cell without a colour has no text of its trace: those without a time are a trace of text.
    bare = [
        (column, row, _cell_text(cell, None))
        for row, cells in enumerate(shown.cells)
        for column, cell in enumerate(cells)
        if value(cell) is None and cell is not None
    ]
    others = go.Scatter(
        mode="text",
        x=[column for column, _, _ in bare],
        y=[row for _, row, _ in bare],
        text=[text for _, _, text in bare],
        hoverinfo="skip",
        showlegend=False,
    )
    axes = (found.parameter(shown.across), found.parameter(shown.down))
    layout = {
        "meta": {"across": shown.across, "down": shown.down},
        "xaxis": {"title": {"text": _short(shown.across)}, "showgrid": False} | _columns(axes[0]),
        "yaxis": {"title": {"text": _short(shown.down)}, "showgrid": False} | _columns(axes[1]),
    }
    return plain(go.Figure([heat, others], layout))


def _cell_text(cell: Group | None, time: float | None) -> str:
    if cell is None:
        return ""
    failed = sum(cell.others.values())
    parts = [f"{time:.4g}<br>n {cell.n}"] if time is not None else []
    return " ".join([*parts, *([f"✕{failed}"] if failed else [])])


def _columns(parameter: Parameter | None) -> Figure:
    """An axis of a parameter's values at equal distances."""
    if parameter is None:
        return {"zeroline": False}
    values = parameter.values
    step = max(1, math.ceil(len(values) / 40))
    return {
        "tickvals": list(range(0, len(values), step)),
        "ticktext": [_short(value, 16) for value in values[::step]],
        "range": [-0.6, len(values) - 0.4],
        "zeroline": False,
        "showgrid": False,
    }


def _scale(times: Sequence[float]) -> Figure:
    """From the least time to the largest; logarithmic where these are far from each other."""
    if not times:
        return {"zeroline": False}
    if min(times) > 0 and max(times) / min(times) > _DECADE:
        low, high = math.log10(min(times)), math.log10(max(times))
        room = 0.06 * (high - low)
        return {"type": "log", "range": [low - room, high + 2 * room]}
    room = 0.06 * (max(times) - min(times)) or 0.02 * max(times)
    return {"range": [max(0.0, min(times) - room), max(times) + 2 * room], "zeroline": False}


def _digits(value: float | None) -> float | None:
    """Six digits: what hovering and zooming show, in fewer bytes."""
    return None if value is None else float(f"{value:.6g}")
