"""Which indexes the migrated database has: what searches and deletions in large tables go by.

Not what the planner takes: of few rows that hangs on when the statistics were made.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

_INDEXES = """
SELECT made.relname, way.amname,
    ARRAY(SELECT pg_get_indexdef(of.indexrelid, n, true)
          FROM generate_series(1, of.indnkeyatts) n ORDER BY n),
    ARRAY(SELECT pg_get_indexdef(of.indexrelid, n, true)
          FROM generate_series(of.indnkeyatts + 1, of.indnatts) n ORDER BY n),
    coalesce(string_to_array(pg_get_expr(of.indpred, of.indrelid, true), ' AND '), '{}')
FROM pg_index of JOIN pg_class made ON made.oid = of.indexrelid JOIN pg_am way ON way.oid = relam
WHERE of.indrelid = %s::regclass AND of.indisvalid
"""


@dataclass(frozen=True)
class Index:
    """A valid one: how it finds (``btree``, ``gin``), by which columns in this order, which others
    it has as well, and of which rows alone: those for which all of ``where`` holds."""

    method: str
    columns: tuple[str, ...]
    included: tuple[str, ...] = ()
    where: frozenset[str] = frozenset()


def indexes(table: str) -> dict[str, Index]:
    """Those of a table by their names."""
    with connection.cursor() as cursor:
        cursor.execute(_INDEXES, [table])
        return {
            name: Index(method, tuple(columns), tuple(included), frozenset(where))
            for name, method, columns, included, where in cursor.fetchall()
        }
