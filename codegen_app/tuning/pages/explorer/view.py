"""The template context of pages with an explorer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from codegen_app.tuning.pages.explorer import charts
from codegen_app.tuning.pages.explorer.builder import ExplorerSource, build_explorer
from codegen_app.tuning.pages.explorer.form import ExplorerForm
from codegen_app.tuning.pages.explorer.model import Explorer
from codegen_app.web.tables import Table
from scheduler.tuning.trials.parameters import Parameter

#: Rows of a table beside an explorer; further rows are on the next pages.
ROWS = 200


@dataclass(frozen=True)
class ExplorerView:
    """An explorer with its form, and its figures by element id."""

    explorer: Explorer
    form: ExplorerForm
    figures: dict[str, Any]
    pairs: bool


def explorer_view(
    source: ExplorerSource, parameters: Sequence[Parameter], form: ExplorerForm
) -> ExplorerView:
    """Build the explorer that the address asks for."""
    explorer = build_explorer(source, parameters, form.asked)
    figures = {
        "explorer-trials": charts.trials(explorer, form.chosen("x"), form.chosen("colour")),
        "explorer-slices": charts.slices(explorer),
        "explorer-grid": charts.grid(explorer),
    }
    drawn = {name: figure for name, figure in figures.items() if figure is not None}
    return ExplorerView(
        explorer,
        form,
        {**drawn, "explorer-data": charts.link_data(explorer, form.chosen("x"))} if drawn else {},
        pairs="explorer-grid" in drawn,
    )


def matching_rows(table: Table[Any], row: str) -> list[int] | None:
    """Return the rows that match the table's filter, by that attribute; None without a filter."""
    return [getattr(match, row) for match in table.all_rows] if table.asked.filter else None
