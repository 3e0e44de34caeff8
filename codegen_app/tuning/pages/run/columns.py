"""Columns by which a run's ledger can be sorted and filtered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codegen_app.tuning.pages.run.query import LedgerRow, RunPage
from codegen_app.tuning.queries.measured_columns import (
    format_pairs,
    metric_columns,
    parameter_column,
    resource_columns,
    time_columns,
    unique_key,
)
from codegen_app.tuning.queries.measured_row import MeasuredRow
from codegen_app.web.tables import Column, Kind


def _measured(row: LedgerRow) -> MeasuredRow | None:
    return row


def _all_columns() -> tuple[Column[LedgerRow], ...]:
    """Return all columns. Built for each page, since the metrics can differ."""
    return (
        Column("node", "Node", lambda row: row.node, Kind.CODE),
        Column("kernel", "Kernel", lambda row: row.kernel or None, Kind.CODE),
        Column("state", "State", lambda row: "best" if row.chosen else row.stage or row.state),
        Column("outcome", "Outcome", lambda row: row.outcome, shown=False),
        Column(
            "tried",
            "Order",
            lambda row: row.order or None,
            Kind.WHOLE,
            note="in the run, per problem",
            shown=False,
        ),
        Column(
            "seconds",
            "Elapsed",
            lambda row: row.at_s,
            Kind.RATIO,
            "s",
            "since the start of the run",
            shown=False,
        ),
        *time_columns(_measured),
        Column("modelled", "Modelled", lambda row: row.modelled_us, Kind.TIME, "µs"),
        *resource_columns(lambda row: row.resource_use),
        *metric_columns(_measured),
        Column("error", "Error / bound", lambda row: row.check_ratio, Kind.RATIO, sparse=True),
        Column("config", "Configuration", lambda row: format_pairs(row.config), Kind.CODE),
        Column("reason", "Reason", lambda row: row.reason or None),
        Column("language", "Language", lambda row: row.language or None),
    )


def parameter_key(name: str) -> str:
    """Return the key of a parameter's column: its name, unless another column has that."""
    return unique_key(name, {column.key for column in _all_columns()})


def columns(page: RunPage, parameters: Sequence[str] = ()) -> tuple[Column[LedgerRow], ...]:
    """Return the columns that can have values for the run: a run of modelled times measures
    nothing. Each of the ``parameters`` has an optional column: the configuration shows them all."""
    left_out = set() if page.languages else {"language"}
    if not page.has_modelled:
        left_out.add("modelled")
    if page.run.modelled:
        measured = (*time_columns(_measured), *metric_columns(_measured))
        left_out |= {"error", *(column.key for column in measured)}
    optional = (
        replace(
            parameter_column(parameter_key(name), name, lambda row: row.config, page.ledger),
            shown=False,
        )
        for name in parameters
    )
    return tuple(column for column in (*_all_columns(), *optional) if column.key not in left_out)
