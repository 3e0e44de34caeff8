"""A dump's rows in the text format of ``pg_restore``, which has a few kinds of lines.

The author of a dump chooses its statements and where rows end, so any other line is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from scheduler.errors import UserError
from scheduler.text import one_line

_COPY = re.compile(rb'COPY public\.("?\w+"?) \(([\w", ]+)\) FROM stdin;\n')
_SEQUENCE = re.compile(
    rb"SELECT pg_catalog\.setval\('public\.(\w+)', (\d{1,19}), (true|false)\);\n"
)
_END = b"\\.\n"
_IGNORED = re.compile(
    rb"(?:--[^\n]*"
    rb"|SET client_encoding = 'UTF8';"
    rb"|SET (?!client_encoding\b)\w+ = [^;\n]*;"
    rb"|SELECT pg_catalog\.set_config\('search_path', '', false\);"
    rb"|\\(?:un)?restrict \w+"
    rb")?\n"
)


@dataclass(frozen=True)
class TableRows:
    """A table's rows: lines in the format of ``COPY``, to be read before the next part."""

    table: str
    columns: tuple[str, ...]
    lines: Iterator[bytes]


@dataclass(frozen=True)
class SequenceValue:
    """The value of a sequence."""

    name: str
    value: int
    is_called: bool


def parse_dump(
    text: Iterable[bytes], tables: Mapping[str, frozenset[str]]
) -> Iterator[TableRows | SequenceValue]:
    """Yield the rows and sequences in the lines, for these tables and their columns. Raises
    ``UserError`` for another table or column, and for anything that is neither rows nor a sequence.
    """
    lines = iter(text)
    for line in lines:
        if match := _COPY.fullmatch(line):
            table, *columns = (
                name.strip(' "') for name in (match[1].decode(), *match[2].decode().split(","))
            )
            if table not in tables:
                raise UserError(f"the backup has a table that Kiln has not: {table}")
            if len(columns) != len(tables[table]) or set(columns) != tables[table]:
                raise UserError(f"the backup's table {table} has other columns than Kiln's")
            yield TableRows(table, tuple(columns), _rows(lines, table))
        elif match := _SEQUENCE.fullmatch(line):
            yield SequenceValue(match[1].decode(), int(match[2]), match[3] == b"true")
        elif not _IGNORED.fullmatch(line):
            what = one_line(line[:80].decode(errors="replace"))
            raise UserError(f"the backup holds more than the rows of Kiln's tables: {what}")


def _rows(lines: Iterator[bytes], table: str) -> Iterator[bytes]:
    for line in lines:
        if line == _END:
            return
        yield line
    raise UserError(f"the backup's table {table} is cut off")
