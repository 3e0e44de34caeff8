"""Columns by which the list of alerts can be sorted and filtered."""

from __future__ import annotations

from collections.abc import Callable

from codegen_app.tracking.queries.alert_rows import AlertRow, WorstChange
from codegen_app.web.tables import Column, Kind, Value
from scheduler.track.evidence import cause_text


def _worst(read: Callable[[WorstChange], Value]) -> Callable[[AlertRow], Value]:
    return lambda row: None if row.worst is None else read(row.worst)


COLUMNS: tuple[Column[AlertRow], ...] = (
    Column("alert", "#", lambda row: row.id, Kind.WHOLE),
    Column("state", "State", lambda row: row.state_label),
    Column("kind", "Kind", lambda row: row.kind_label),
    Column("revision", "Revision", lambda row: f"{row.subject} {row.branch}".rstrip()),
    Column("commit", "Commit", lambda row: row.commit or None, note="its subject", shown=False),
    Column("author", "Author", lambda row: row.author or None, shown=False),
    Column("moved", "Largest change", _worst(lambda worst: worst.series), shown=False),
    Column("series", "Series", lambda row: row.n_series, Kind.WHOLE),
    Column(
        "ratio",
        "Worst ratio",
        _worst(lambda worst: worst.ratio),
        Kind.RATIO,
        note="level after / level before, for the series with the largest change",
    ),
    Column(
        "low",
        "95% interval",
        _worst(lambda worst: worst.low),
        Kind.RATIO,
        note="of the ratio; sorted by the lower end",
    ),
    Column("high", "Upper end", _worst(lambda worst: worst.high), Kind.RATIO, shown=False),
    Column(
        "n",
        "n, smaller side",
        _worst(lambda worst: min(worst.n_before, worst.n_after)),
        Kind.WHOLE,
        note="points before and after; sorted by the smaller",
    ),
    Column("cause", "Cause", lambda row: cause_text(row.cause) or None),
    Column("assignee", "Assignee", lambda row: row.assignee or None),
    Column(
        "since",
        "Since",
        lambda row: row.at,
        Kind.MOMENT,
        note="time of the revision; of a machine, when it changed",
    ),
    Column("raised", "Raised", lambda row: row.created_at, Kind.MOMENT, shown=False),
    Column(
        "recovered",
        "Recovered",
        lambda row: row.recovered_at,
        Kind.MOMENT,
        note="first point back at the previous level",
        shown=False,
    ),
)
