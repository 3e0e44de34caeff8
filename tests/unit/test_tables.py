"""Tables as addresses ask for them: sorted, filtered, with the columns that are chosen."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import codegen_app
from codegen_app.web.tables import (
    Column,
    Kind,
    TableQuery,
    TableQueryError,
    asked,
    build_table,
    filter_and_sort,
    format_tsv,
)


@dataclass(frozen=True)
class Row:
    name: str
    time: float | None
    waves: int | None = None


COLUMNS: tuple[Column[Row], ...] = (
    Column("name", "Kernel", lambda row: row.name, Kind.CODE),
    Column("time", "Time", lambda row: row.time, Kind.TIME, "µs"),
    Column("waves", "Waves", lambda row: row.waves, Kind.WHOLE, shown=False),
)
ROWS = (
    *(Row("mm_b", 20.5, 4), Row("Softmax_a", None, 8), Row("mm_a", 3.25)),
    *(Row("conv", 100.0, 2), Row("mm_c", 20.5, 1)),
)


def names(sort: str = "", text: str = "") -> list[str]:
    return [row.name for row in filter_and_sort(COLUMNS, ROWS, asked(COLUMNS, sort, text, ()))]


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("time", ["mm_a", "mm_b", "mm_c", "conv", "Softmax_a"]),
        ("-time", ["conv", "mm_b", "mm_c", "mm_a", "Softmax_a"]),  # none is last, equal ones stay
        ("-waves", ["Softmax_a", "mm_b", "conv", "mm_c", "mm_a"]),  # by one that is not shown
        ("name", ["conv", "mm_a", "mm_b", "mm_c", "Softmax_a"]),
        ("", [row.name for row in ROWS]),
    ],
)
def test_rows_are_sorted_by_any_column_and_those_without_a_value_are_last(
    sort: str, expected: list[str]
) -> None:
    assert names(sort) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mm", ["mm_b", "mm_a", "mm_c"]),
        ("MM time<=20.5 waves>1", ["mm_b"]),
        ("time>=100", ["conv"]),
        ("waves!=4", ["Softmax_a", "conv", "mm_c"]),  # none is neither 4 nor another number
        ("name=softmax", ["Softmax_a"]),
        ("name!=mm", ["Softmax_a", "conv"]),
        ("name==mm_a", ["mm_a"]),
        ("name==mm", []),  # no value as a whole
        ("waves==1|8", ["Softmax_a", "mm_c"]),
        ("waves==", ["mm_a"]),  # no value
        ("waves==|4", ["mm_b", "mm_a"]),
        ("nothing-there", []),
    ],
)
def test_rows_are_filtered_by_words_and_by_any_column(text: str, expected: list[str]) -> None:
    assert names(text=text) == expected


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({"sort": "-speed"}, "unknown column speed. Columns: name, time, waves"),
        ({"text": "speed>3"}, "unknown column speed"),
        ({"text": "time<fast"}, "time takes a number, not “fast”"),
        ({"text": "name<b"}, "name is text: use =, == or !="),
        ({"chosen": ["name", "nope"]}, "unknown column nope"),
    ],
)
def test_what_is_none_of_the_columns_is_said(given_: dict[str, object], said: str) -> None:
    with pytest.raises(TableQueryError, match=said):
        asked(COLUMNS, **{"sort": "", "text": "", "chosen": (), **given_})  # type: ignore[arg-type]


def test_a_blank_of_a_value_is_named_by_a_stroke() -> None:
    rows = [Row("compile error", 1.0), Row("compile", 2.0)]
    found = filter_and_sort(COLUMNS, rows, asked(COLUMNS, "", "name==Compile_Error", ()))
    assert found == rows[:1]


def test_columns_are_chosen_in_the_tables_order_and_pages_count_what_matches() -> None:
    usual = build_table("kernels", COLUMNS, ROWS, TableQuery(), page=2)
    assert [column.key for column in usual.chosen] == ["name", "time"]
    asks = asked(COLUMNS, "time", "mm", ["waves", "name"])
    shown = build_table("kernels", COLUMNS, ROWS, asks, page=2)
    assert [column.key for column in shown.chosen] == ["name", "waves"]
    assert (shown.total, shown.matching, shown.next, shown.previous) == (5, 3, 2, None)
    last = build_table("kernels", COLUMNS, ROWS, TableQuery(start=4), page=2)
    assert (len(last.rows), last.next, last.previous) == (1, None, 2)


def test_a_column_that_no_row_has_anything_of_gives_way_unless_it_is_asked_for() -> None:
    sparse = (*COLUMNS, Column[Row]("spare", "Spare", lambda _: None, sparse=True))
    assert [one.key for one in build_table("t", sparse, ROWS, TableQuery()).chosen] == [
        "name",
        "time",
    ]
    asks = asked(sparse, "", "", ["name", "spare"])
    assert [one.key for one in build_table("t", sparse, ROWS, asks).chosen] == ["name", "spare"]


def test_tsv_has_every_row_that_matches_and_no_cell_breaks_a_line() -> None:
    rows = [Row("a\tb\nc", 1234567.0), Row("d", None), Row("e", 1 / 3)]
    lines = format_tsv(build_table("t", COLUMNS, rows, TableQuery(), page=1)).split("\n")
    assert lines == ["Kernel\tTime [µs]", "a b c\t1234567.0", "d\t", f"e\t{1 / 3}", ""]


@given(st.text(max_size=8), st.floats(allow_nan=False))
@example("=1+1", -1.5)
@example('"=1+1"', -0.0)
@example("\t=1", 0.0)
@example("\uff1d1", 0.0)
def test_no_cell_of_a_table_is_a_formula_to_a_spreadsheet(name: str, time: float) -> None:
    """Read back as spreadsheets do, by quotes: texts begin harmlessly, numbers stay numbers."""
    text = format_tsv(build_table("t", COLUMNS, [Row(name, time)], TableQuery(), page=1))
    _, (cell, number) = csv.reader(io.StringIO(text), "excel-tab")
    assert cell[:1] not in tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
    assert cell.removeprefix("'") == re.sub(r"\s", " ", name).removeprefix("'")
    assert float(number) == time


def test_every_export_of_rows_goes_through_one_writer() -> None:
    """``csv`` is imported in ``codegen_app.web.delimited`` alone."""
    root = Path(codegen_app.__file__).parent
    texts = {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*.py")}
    writers = {at for at, text in texts.items() if re.search(r"^(import|from) csv\b", text, re.M)}
    assert writers == {"web/delimited.py"}
    exports = {at for at, text in texts.items() if re.search(r"text/(csv|tab-sep)", text)}
    assert exports == {"tracking/pages/history/files.py", "web/table_view.py"}


@given(st.lists(st.one_of(st.none(), st.floats(allow_nan=False)), max_size=30))
def test_sorting_keeps_every_row_once(times: list[float | None]) -> None:
    rows = [Row(str(at), time) for at, time in enumerate(times)]
    down = filter_and_sort(COLUMNS, rows, asked(COLUMNS, "-time", "", ()))
    valued = [row.time for row in down if row.time is not None]
    assert valued == sorted(valued, reverse=True)
    assert sorted(row.name for row in down) == sorted(row.name for row in rows)


@given(st.text(max_size=60))
def test_any_text_is_either_a_filter_or_an_error_with_words(text: str) -> None:
    try:
        filter_and_sort(COLUMNS, ROWS, asked(COLUMNS, "", text, ()))
    except TableQueryError as error:
        assert str(error)
