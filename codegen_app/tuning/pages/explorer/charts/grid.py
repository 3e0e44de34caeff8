"""Two parameters as a heat map."""

from __future__ import annotations

import math

import plotly.graph_objects as go

from codegen_app.tuning.charts import Figure, figure_json
from codegen_app.tuning.pages.explorer.builder import MEDIAN
from codegen_app.tuning.pages.explorer.charts.axes import group_summary, shorten, value_axis
from codegen_app.tuning.pages.explorer.model import Explorer
from scheduler.tuning.trials.slices import TrialGroup


def grid(explorer: Explorer) -> Figure | None:
    """Return the heat map of two parameters: a cell's best (or median) time with its n; None if
    there are fewer than two."""
    pair = explorer.grid
    if pair is None:
        return None
    is_median = explorer.cell == MEDIAN

    def value(cell: TrialGroup | None) -> float | None:
        return None if cell is None else cell.median if is_median else cell.best

    times = [[value(cell) for cell in row] for row in pair.cells]
    known = [time for row in times for time in row if time is not None]
    if not known:
        return None
    heat = go.Heatmap(
        x=list(range(len(pair.columns))),
        y=list(range(len(pair.rows))),
        z=[[None if time is None else round(math.log10(time), 5) for time in row] for row in times],
        text=[[_cell_text(cell, value(cell)) for cell in row] for row in pair.cells],
        customdata=[
            ["not tried" if cell is None else group_summary(cell) for cell in row]
            for row in pair.cells
        ],
        texttemplate="%{text}",
        hovertemplate=f"{shorten(pair.across)} %{{x}}, {shorten(pair.down)} %{{y}}"
        "<br>%{customdata}<extra></extra>",
        hoverongaps=True,
        xgap=2,
        ygap=2,
        showscale=False,  # Plotly styles it inline, which the policy forbids; cells have figures
    )
    # The trace writes no text in cells without a colour: those without a time get a text trace.
    bare = [
        (column, row, _cell_text(cell, None))
        for row, cells in enumerate(pair.cells)
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
    axes = (explorer.parameter(pair.across), explorer.parameter(pair.down))
    layout = {
        "meta": {"across": pair.across, "down": pair.down},
        "xaxis": {"title": {"text": shorten(pair.across)}, "showgrid": False} | value_axis(axes[0]),
        "yaxis": {"title": {"text": shorten(pair.down)}, "showgrid": False} | value_axis(axes[1]),
    }
    return figure_json(go.Figure([heat, others], layout))


def _cell_text(cell: TrialGroup | None, time: float | None) -> str:
    if cell is None:
        return ""
    failed = sum(cell.others.values())
    parts = [f"{time:.4g}<br>n {cell.n}"] if time is not None else []
    return " ".join([*parts, *([f"✕{failed}"] if failed else [])])
