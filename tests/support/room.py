"""The room that points take, with their indexes."""

from __future__ import annotations

from typing import Protocol

# Without references, which are checked row by row and take no room here.
_TABLE = "CREATE TEMPORARY TABLE room (LIKE codegen_app_datum INCLUDING ALL)"
_STORE = "INSERT INTO room ({columns}) {points}"
_MEASURE = "SELECT pg_total_relation_size('room') / count(*)::float8 FROM room"
COLUMNS = (
    "series_id, at, measured_at, value, low, high, n, revision_id, conditions_id, batch_id, source"
)


class _Cursor(Protocol):
    """Django's cursor, or psycopg's."""

    def execute(self, query: str, /) -> object: ...

    def fetchone(self) -> tuple[float, ...] | None: ...


def bytes_a_point(cursor: _Cursor, points: str) -> float:
    """Return the bytes of heap and indexes per point, stored one after the other in the order of
    the statement ``points``, which selects ``COLUMNS``: an index that is built at once is smaller
    than one that grows."""
    cursor.execute(_TABLE)
    cursor.execute(_STORE.format(columns=COLUMNS, points=points))
    cursor.execute(_MEASURE)
    row = cursor.fetchone()
    assert row is not None
    cursor.execute("DROP TABLE room")
    return row[0]
