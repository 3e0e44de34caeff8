"""Axes: a parameter's values at equal distances, times from minimum to maximum; short texts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from codegen_app.tuning.charts import Figure
from codegen_app.tuning.pages.explorer.model import Explorer
from scheduler.tuning.trials.parameters import Parameter
from scheduler.tuning.trials.slices import TrialGroup

_WORDS = {"measured": "median", "emulated": "emulated median", "modelled": "modelled time"}
_DECADE = 10.0  # ratio of the largest to the smallest time from which the axis is logarithmic


def time_title(explorer: Explorer) -> str:
    """Return the title of a time axis: the kind of time, its unit, the device and the sizes."""
    sizes = " ".join(f"{name}={value}" for name, value in explorer.sizes.items())
    return f"{_WORDS[explorer.times]}, µs" + (f" at {sizes}" if sizes else "")


def value_axis(parameter: Parameter | None) -> Figure:
    """Return an axis of a parameter's values at equal distances."""
    if parameter is None:
        return {"zeroline": False}
    values = parameter.values
    step = max(1, math.ceil(len(values) / 40))
    return {
        "tickvals": list(range(0, len(values), step)),
        "ticktext": [shorten(value, 16) for value in values[::step]],
        "range": [-0.6, len(values) - 0.4],
        "zeroline": False,
        "showgrid": False,
    }


def time_axis(times: Sequence[float]) -> Figure:
    """Return an axis from the lowest time to the highest; logarithmic if these are far apart."""
    if not times:
        return {"zeroline": False}
    if min(times) > 0 and max(times) / min(times) > _DECADE:
        low, high = math.log10(min(times)), math.log10(max(times))
        room = 0.06 * (high - low)
        return {"type": "log", "range": [low - room, high + 2 * room]}
    room = 0.06 * (max(times) - min(times)) or 0.02 * max(times)
    return {"range": [max(0.0, min(times) - room), max(times) + 2 * room], "zeroline": False}


def round_6(value: float | None) -> float | None:
    """Round to six digits: enough for hovering and zooming, in fewer bytes."""
    return None if value is None else float(f"{value:.6g}")


def shorten(text: str, most: int = 90) -> str:
    """Shorten and escape a text: Plotly renders some HTML, and names come from uploaded files."""
    cut = text if len(text) <= most else f"{text[: most - 1]}…"
    return cut.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def group_summary(group: TrialGroup) -> str:
    """Describe the number of trials, their times, and the outcomes of those without one."""
    others = ", ".join(f"{count} {state}" for state, count in group.others.items())
    timed = f"n = {group.n}"
    if group.best is not None and group.median is not None:
        timed += f", best {group.best:.4g} µs, median {group.median:.4g} µs"
    return timed + (f"; without a time: {others}" if others else "")
