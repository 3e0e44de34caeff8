"""Rows as CSV and TSV: the only writer of either, so that no cell is a formula."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence

CSV = csv.excel
# Spreadsheets evaluate a text that begins with one of these (OWASP, "CSV Injection"); the last four
# are their full-width forms.
_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")


class TSV(csv.excel_tab):
    """As pasted into a sheet, with the line ends of text."""

    lineterminator = "\n"


def format_rows(rows: Iterable[Sequence[object]], dialect: type[csv.Dialect]) -> Iterator[str]:
    """Yield a line per row, with its line end; None is an empty cell. A text that a spreadsheet
    would evaluate gets an apostrophe before it; numbers stay as they are."""
    writer = csv.writer(_Line(), dialect)
    for row in rows:
        yield writer.writerow(
            f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
            for value in row
        )


class _Line:
    """A file that returns what is written."""

    def write(self, text: str) -> str:
        return text
