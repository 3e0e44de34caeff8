"""Data by which scripts link plots and table, and draw parallel coordinates."""

from __future__ import annotations

from typing import Any

from codegen_app.tuning.pages.explorer.charts.axes import round_6, time_title
from codegen_app.tuning.pages.explorer.form import MODELLED, SECONDS, TRIED
from codegen_app.tuning.pages.explorer.model import Explorer
from scheduler.tuning.trials.parameters import UNNAMED


def link_data(explorer: Explorer, x: str) -> dict[str, Any]:
    """Return the data by which the script links plots and table and draws parallel coordinates: the
    trials as columns, the parameters with the trials' values, and the table's column for each axis;
    ``x`` is that of the plot of trials."""
    first = explorer.trials[0] if explorer.trials else None
    node = f"node=={explorer.node}".lower() if len(explorer.nodes) > 1 else ""
    return {
        "rows": [trial.row for trial in explorer.trials],
        "times": [round_6(trial.time_us) for trial in explorer.trials],
        "tried": [trial.order is not None for trial in explorer.trials],
        "kernels": [trial.kernel for trial in explorer.trials],
        "url": first.url.replace(first.kernel, "*") if first else "",
        "title": time_title(explorer),
        "node": node,
        "x": x,
        "axes": {
            TRIED: "position" if explorer.times == MODELLED and not explorer.nodes else "tried",
            SECONDS: "seconds",
            MODELLED: "modelled",
            "time": "modelled" if explorer.times == MODELLED else "median",
            "state": "outcome",
        },
        "parameters": [
            {
                "name": parameter.name,
                "key": explorer.keys[parameter.name],
                "values": parameter.values,
                "codes": parameter.codes,
                "number": parameter.is_number and UNNAMED not in parameter.values,
            }
            for parameter in explorer.parameters
        ],
    }
