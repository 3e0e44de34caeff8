"""Tables that sort, filter and choose their columns by the address: one mechanism for all of them.

A table is its columns; what an address asks of it is ``Asked``. ``sort=-time`` sorts by a column
(descending with the sign), ``filter=time<20 target=gfx942 gemm`` keeps the rows for which all of it
holds (a word without a comparison is looked for in every text; ``layout==row|column`` is one of
these exactly, a blank in them written ``_``, and ``layout==`` no value), ``column=`` names what is
shown.
Values are those that are shown, in the column's unit: what is filtered by is what is read.
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

from codegen_app import delimited

Row = TypeVar("Row")
Value: TypeAlias = str | float | int | datetime | None
MAX_CONDITIONS = 20
_CONDITION = re.compile(r"([A-Za-z][\w.]*)(<=|>=|!=|==|<|>|=)(.*)")
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    **{"<=": le, ">=": ge, "!=": ne, "<": lt, ">": gt, "=": eq}
}


class Kind(StrEnum):
    """How a column's values are written."""

    TEXT = "text"
    CODE = "code"
    KERNEL = "kernel"  # a name that begins as others do: its end is what tells it from them
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
    """A column: what addresses call it, its heading, and a row's value in ``unit`` (None where it
    has none). ``link`` is where its text leads; ``hover`` what is said of a value on hovering;
    ``after`` is said beside it, ``emulated`` whether it is a time of the CPU emulation; one that is
    not ``shown`` is there for who asks for it, and so is a ``sparse`` one of which no row has a
    value: it would only take the place of one that matters."""

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
    """A column's value compared with another; ``key`` is "" for a word in any text. ``==`` has the
    values of which it is one, as ``_exact`` writes them."""

    key: str
    compare: str
    operand: str | float | frozenset[str]


@dataclass(frozen=True)
class TableQuery:
    """What an address asks of a table; ``columns`` are keys in the table's order, () for those
    that it shows by itself."""

    sort: str = ""
    descending: bool = False
    filter: str = ""
    conditions: tuple[Condition, ...] = ()
    columns: tuple[str, ...] = ()
    start: int = 0

    @property
    def is_arranged(self) -> bool:
        """Whether rows are sorted or left out: then a page needs more than those that it shows."""
        return bool(self.sort or self.conditions)


class TableQueryError(ValueError):
    """A parameter that is none; the message says which and why."""


@dataclass(frozen=True)
class Table(Generic[Row]):
    """What a page shows of a table: ``rows`` from ``start`` of the ``matching`` ones, of ``total``.
    ``chosen`` are the columns that are shown, of ``columns``."""

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
        """Where the page before this one starts; None on the first."""
        return max(0, self.start - self.page) if self.start else None

    @property
    def end(self) -> int:
        """The position behind the last row shown."""
        return self.start + len(self.rows)

    @property
    def next(self) -> int | None:
        """Where the page after this one starts; None on the last."""
        return self.end if self.end < self.matching else None


def asked(
    columns: Sequence[Column[Any]], sort: str, text: str, chosen: Sequence[str]
) -> TableQuery:
    """What an address asks of these columns. Raises ``AskedError`` for what is none of them."""
    by_key = {column.key: column for column in columns}
    key = sort.removeprefix("-")
    for one in (key, *chosen):
        if one and one not in by_key:
            raise TableQueryError(f"{one} is no column: there are {', '.join(by_key)}")
    names = () if not chosen else tuple(one for one in by_key if one in chosen)
    conditions = tuple(_condition(by_key, word) for word in text.split()[:MAX_CONDITIONS])
    return TableQuery(key, sort.startswith("-"), text, conditions, names)


def _condition(columns: Mapping[str, Column[Any]], word: str) -> Condition:
    found = _CONDITION.fullmatch(word)
    if found is None:
        return Condition("", "", word.lower())
    key, compare, operand = found.groups()
    if key not in columns:
        raise TableQueryError(f"{key} is no column: there are {', '.join(columns)}")
    if compare == "==":
        return Condition(key, compare, frozenset(operand.lower().split("|")))
    if not columns[key].kind.is_number:
        if compare not in ("=", "!="):
            raise TableQueryError(f"{key} is text: compare it with =, == or !=")
        return Condition(key, compare, operand.lower())
    try:
        return Condition(key, compare, float(operand))
    except ValueError:
        raise TableQueryError(f"{key} is compared with a number, not with “{operand}”") from None


def build_table(
    name: str,
    columns: Sequence[Column[Row]],
    rows: Iterable[Row],
    asks: TableQuery,
    page: int = 0,
) -> Table[Row]:
    """The table as it is asked for; ``page`` rows of it, all where that is 0."""
    every = list(rows)
    found = filter_and_sort(columns, every, asks)
    start = min(asks.start, len(found)) if page else 0
    names = asks.columns or tuple(
        one.key for one in columns if one.shown and _has_values(one, every)
    )
    return Table(
        name=name,
        columns=columns,
        chosen=[column for column in columns if column.key in names],
        rows=found[start : start + page] if page else found,
        asked=asks,
        total=len(every),
        matching=len(found),
        start=start,
        page=page,
        all_rows=found,
    )


def paged_table(
    name: str, columns: Sequence[Column[Row]], rows: Sequence[Row], asks: TableQuery, total: int
) -> Table[Row]:
    """The table where ``rows`` are the part of ``total`` that a page shows, as the database sorted
    and parted them: nothing is asked but which columns are shown."""
    shown = build_table(name, columns, rows, replace(asks, sort="", filter="", conditions=()))
    return replace(shown, total=total, matching=total)


def _has_values(column: Column[Row], rows: Sequence[Row]) -> bool:
    return not column.sparse or any(column.value(row) is not None for row in rows)


def filter_and_sort(
    columns: Sequence[Column[Row]], rows: Iterable[Row], asks: TableQuery
) -> list[Row]:
    """Rows for which every condition holds, sorted as asked; without a value they come last,
    whichever way, and equal ones stay in their order."""
    by_key = {column.key: column for column in columns}
    texts = [column for column in columns if not column.kind.is_number]
    kept = [
        row for row in rows if all(_matches(one, by_key, texts, row) for one in asks.conditions)
    ]
    if not asks.sort:
        return kept
    value = by_key[asks.sort].value
    valued = [(found, row) for row in kept if (found := value(row)) is not None]
    valued.sort(key=lambda pair: _sort_key(pair[0]), reverse=asks.descending)
    return [row for _, row in valued] + [row for row in kept if value(row) is None]


def _sort_key(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _matches(
    one: Condition,
    columns: Mapping[str, Column[Row]],
    texts: Sequence[Column[Row]],
    row: Row,
) -> bool:
    if not one.key:
        return any(str(one.operand) in str(column.value(row) or "").lower() for column in texts)
    found = columns[one.key].value(row)
    if isinstance(one.operand, frozenset):
        return _exact_text(found) in one.operand
    if columns[one.key].kind.is_number:
        return found is not None and _COMPARE[one.compare](found, one.operand)
    holds = str(one.operand) in str(found or "").lower()
    return holds is (one.compare == "=")


def _exact_text(value: Value) -> str:
    """A value as ``==`` names it: whole numbers without a point, blanks as ``_``, none as ""."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value).lower().replace(" ", "_")


def format_tsv(shown: Table[Any]) -> str:
    """Every row that matches, in the columns that are shown: a line of headings, then a line a row,
    values apart by tabs, in full precision."""
    head = [
        f"{column.title} [{column.unit}]" if column.unit else column.title
        for column in shown.chosen
    ]
    rows = ([_tsv_value(column.value(row)) for column in shown.chosen] for row in shown.all_rows)
    return "".join(delimited.format_rows(chain([head], rows), delimited.TSV))


def _tsv_value(value: Value) -> object:
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    return re.sub(r"\s", " ", value) if isinstance(value, str) else value
