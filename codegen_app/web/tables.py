"""Tables that sort, filter and choose their columns by the query string: one mechanism for all.

A table is its columns; ``TableQuery`` is what the address asks for. ``sort=-time`` sorts by a
column (descending with the sign). ``filter=time<20 target=gfx942 gemm`` keeps the rows that satisfy
all conditions: a word without a comparison is searched in every text, ``layout==row|column``
matches one of these values exactly (blanks written as ``_``), and ``layout==`` matches no value.
``column=`` names the columns to show.

Filters compare the displayed values, in the column's unit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from itertools import chain
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Generic, TypeAlias, TypeVar

from codegen_app.web import delimited

Row = TypeVar("Row")
Value: TypeAlias = str | float | int | datetime | None
MAX_CONDITIONS = 20
_CONDITION = re.compile(r"([A-Za-z][\w.]*)(<=|>=|!=|==|<|>|=)(.*)")
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    **{"<=": le, ">=": ge, "!=": ne, "<": lt, ">": gt, "=": eq}
}


class Kind(StrEnum):
    """The format of a column's values."""

    TEXT = "text"
    CODE = "code"
    KERNEL = "kernel"  # names that share a prefix: the end distinguishes them
    WHOLE = "whole"
    TIME = "time"  # microseconds
    SHARE = "share"  # percent
    RATIO = "ratio"
    MOMENT = "moment"
    STATE = "state"

    @property
    def is_number(self) -> bool:
        """Whether its values are compared as numbers."""
        return self in (Kind.WHOLE, Kind.TIME, Kind.SHARE, Kind.RATIO)


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column: its key in addresses, its heading, and a row's value in ``unit`` (None if it has
    none). ``link`` is the target of its text, ``hover`` the tooltip of a value, ``after`` a note
    beside it, ``emulated`` whether the value is a time of the CPU emulation. A column that is not
    ``shown`` appears only on request, and so does a ``sparse`` one without any value: it would
    displace a useful one."""

    key: str
    title: str
    value: Callable[[Row], Value]
    kind: Kind = Kind.TEXT
    unit: str = ""
    note: str = ""
    link: Callable[[Row], str] | None = None
    hover: Callable[[Row], str] | None = None
    after: Callable[[Row], str] | None = None
    emulated: Callable[[Row], bool] | None = None
    shown: bool = True
    sparse: bool = False


@dataclass(frozen=True)
class Condition:
    """A comparison of a column's value with another; ``key`` is "" for a word in any text. ``==``
    holds the alternatives, as ``_exact_text`` writes them."""

    key: str
    compare: str
    operand: str | float | frozenset[str]


@dataclass(frozen=True)
class TableQuery:
    """A table's parameters in an address; ``columns`` are keys in the table's order, () for the
    default columns."""

    sort: str = ""
    descending: bool = False
    filter: str = ""
    conditions: tuple[Condition, ...] = ()
    columns: tuple[str, ...] = ()
    start: int = 0

    @property
    def is_arranged(self) -> bool:
        """Whether rows are sorted or filtered: then a page needs more rows than it shows."""
        return bool(self.sort or self.conditions)


class TableQueryError(ValueError):
    """An invalid parameter; the message names it and the reason."""


@dataclass(frozen=True)
class Table(Generic[Row]):
    """The displayed part of a table: ``rows`` from ``start`` of the ``matching`` ones, out of
    ``total``. ``chosen`` are the displayed ones of ``columns``."""

    name: str
    columns: Sequence[Column[Row]]
    chosen: Sequence[Column[Row]]
    rows: Sequence[Row]
    asked: TableQuery
    total: int
    matching: int
    start: int = 0
    page: int = 0
    all_rows: Sequence[Row] = field(default=(), repr=False)

    @property
    def previous(self) -> int | None:
        """The start of the previous page; None on the first."""
        return max(0, self.start - self.page) if self.start else None

    @property
    def end(self) -> int:
        """The position after the last displayed row."""
        return self.start + len(self.rows)

    @property
    def next(self) -> int | None:
        """The start of the next page; None on the last."""
        return self.end if self.end < self.matching else None


def asked(
    columns: Sequence[Column[Any]], sort: str, text: str, chosen: Sequence[str]
) -> TableQuery:
    """Parse a table's parameters. Raises ``TableQueryError`` for invalid ones."""
    by_key = {column.key: column for column in columns}
    key = sort.removeprefix("-")
    for name in (key, *chosen):
        if name and name not in by_key:
            raise TableQueryError(f"unknown column {name}. Columns: {', '.join(by_key)}")
    names = tuple(name for name in by_key if name in chosen)
    conditions = tuple(_condition(by_key, word) for word in text.split()[:MAX_CONDITIONS])
    return TableQuery(key, sort.startswith("-"), text, conditions, names)


def _condition(columns: Mapping[str, Column[Any]], word: str) -> Condition:
    match = _CONDITION.fullmatch(word)
    if match is None:
        return Condition("", "", word.lower())
    key, compare, operand = match.groups()
    if key not in columns:
        raise TableQueryError(f"unknown column {key}. Columns: {', '.join(columns)}")
    if compare == "==":
        return Condition(key, compare, frozenset(operand.lower().split("|")))
    if not columns[key].kind.is_number:
        if compare not in ("=", "!="):
            raise TableQueryError(f"{key} is text: use =, == or !=")
        return Condition(key, compare, operand.lower())
    try:
        return Condition(key, compare, float(operand))
    except ValueError:
        raise TableQueryError(f"{key} takes a number, not “{operand}”") from None


def build_table(
    name: str,
    columns: Sequence[Column[Row]],
    rows: Iterable[Row],
    query: TableQuery,
    page: int = 0,
) -> Table[Row]:
    """Return the table for a query; ``page`` is the number of rows per page, 0 for all."""
    unfiltered = list(rows)
    matching = filter_and_sort(columns, unfiltered, query)
    start = min(query.start, len(matching)) if page else 0
    names = query.columns or tuple(
        column.key
        for column in columns
        if column.shown
        and (not column.sparse or any(column.value(row) is not None for row in unfiltered))
    )
    return Table(
        name=name,
        columns=columns,
        chosen=[column for column in columns if column.key in names],
        rows=matching[start : start + page] if page else matching,
        asked=query,
        total=len(unfiltered),
        matching=len(matching),
        start=start,
        page=page,
        all_rows=matching,
    )


def paged_table(
    name: str, columns: Sequence[Column[Row]], rows: Sequence[Row], query: TableQuery, total: int
) -> Table[Row]:
    """Return the table if ``rows`` are already one page out of ``total``, sorted and sliced by the
    database: the query only selects the columns."""
    table = build_table(name, columns, rows, replace(query, sort="", filter="", conditions=()))
    return replace(table, total=total, matching=total)


def filter_and_sort(
    columns: Sequence[Column[Row]], rows: Iterable[Row], query: TableQuery
) -> list[Row]:
    """Return rows that satisfy every condition, sorted as asked. Rows without a value come last in
    either direction; the sort is stable."""
    by_key = {column.key: column for column in columns}
    texts = [column for column in columns if not column.kind.is_number]
    matching = [
        row
        for row in rows
        if all(_matches(condition, by_key, texts, row) for condition in query.conditions)
    ]
    if not query.sort:
        return matching
    value = by_key[query.sort].value
    valued = [(cell, row) for row in matching if (cell := value(row)) is not None]
    valued.sort(
        key=lambda pair: pair[0].lower() if isinstance(pair[0], str) else pair[0],
        reverse=query.descending,
    )
    return [row for _, row in valued] + [row for row in matching if value(row) is None]


def _matches(
    condition: Condition,
    columns: Mapping[str, Column[Row]],
    texts: Sequence[Column[Row]],
    row: Row,
) -> bool:
    if not condition.key:
        word = str(condition.operand)
        return any(word in str(column.value(row) or "").lower() for column in texts)
    value = columns[condition.key].value(row)
    if isinstance(condition.operand, frozenset):
        return _exact_text(value) in condition.operand
    if columns[condition.key].kind.is_number:
        return value is not None and _COMPARE[condition.compare](value, condition.operand)
    is_found = str(condition.operand) in str(value or "").lower()
    return is_found is (condition.compare == "=")


def _exact_text(value: Value) -> str:
    """Return a value as ``==`` writes it: whole numbers without a point, blanks as ``_``, no value
    as ""."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value).lower().replace(" ", "_")


def format_tsv(table: Table[Any]) -> str:
    """Return every matching row in the displayed columns as TSV: a line of headings, then one line
    per row, in full precision."""
    head = [
        f"{column.title} [{column.unit}]" if column.unit else column.title
        for column in table.chosen
    ]
    rows = ([_tsv_value(column.value(row)) for column in table.chosen] for row in table.all_rows)
    return "".join(delimited.format_rows(chain([head], rows), delimited.TSV))


def _tsv_value(value: Value) -> object:
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    return re.sub(r"\s", " ", value) if isinstance(value, str) else value
