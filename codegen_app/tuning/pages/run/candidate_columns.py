"""Columns by which a node's candidates can be sorted and filtered."""

from __future__ import annotations

from collections.abc import Sequence

from codegen_app.tuning.pages.node.query import CandidateRow, NodePage
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
from scheduler.benchmark.metrics import METRICS


def _timing(row: CandidateRow) -> MeasuredRow | None:
    return row.timing


_FIRST: tuple[Column[CandidateRow], ...] = (
    Column("position", "#", lambda row: row.position, Kind.WHOLE, note="0 is the default"),
    Column(
        "tried",
        "Order",
        lambda row: row.order,
        Kind.WHOLE,
        note="of the last measurement or rejection",
        shown=False,
    ),
    Column("kernel", "Kernel", lambda row: row.kernel, Kind.CODE),
    Column("serves", "Selected on", lambda row: ", ".join(row.serves) or None, sparse=True),
)
_LAST: tuple[Column[CandidateRow], ...] = (
    Column("builds", "Builds", lambda row: ", ".join(b.target for b in row.builds) or None),
    Column("device", "Measured on", lambda row: row.timing.device if row.timing else None),
    Column("rejected", "Rejected", lambda row: "; ".join(row.rejections) or None, sparse=True),
    Column("outcome", "Outcome", lambda row: row.outcome, shown=False),
    Column("language", "Language", lambda row: row.language),
    Column("config", "Configuration", lambda row: format_pairs(row.config), Kind.CODE, shown=False),
)


_TIMES: tuple[Column[CandidateRow], ...] = (
    *time_columns(_timing),
    Column(
        "ratio",
        "Ratio",
        lambda row: row.ratio.ratio if row.ratio else None,
        Kind.RATIO,
        note="median / median of the kernel in the headline",
        sparse=True,
    ),
)
_RESOURCES: tuple[Column[CandidateRow], ...] = resource_columns(lambda row: row.resource_use)
_MODELLED: Column[CandidateRow] = Column(
    "modelled",
    "Modelled",
    lambda row: row.modelled.time_us if row.modelled else None,
    Kind.TIME,
    "µs",
)
_KEYS = {column.key for column in (*_FIRST, *_TIMES, _MODELLED, *_RESOURCES, *_LAST)} | set(METRICS)


def columns(page: NodePage, parameters: Sequence[str]) -> tuple[Column[CandidateRow], ...]:
    """Return the columns that can have values for the node, with one for each parameter in which
    the candidates differ."""
    left_out = set() if page.languages else {"language"}
    if page.modelled_at is None:
        left_out.add("modelled")
    optional = (
        parameter_column(parameter_key(name), name, lambda row: row.config, page.candidates)
        for name in parameters
    )
    every = (*_FIRST, *_TIMES, _MODELLED, *_RESOURCES, *optional, *metric_columns(_timing), *_LAST)
    return tuple(column for column in every if column.key not in left_out)


def parameter_key(name: str) -> str:
    """Return the key of a parameter's column: its name, unless another column has that."""
    return unique_key(name, _KEYS)
