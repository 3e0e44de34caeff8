"""Time limits of a search: each kind has its own limit, and one that exceeds it says so instead of
delaying the others."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext

from django.db import OperationalError, connection, transaction

from codegen_app.site.search.model import Finder, Group

_QUERY_CANCELED = "57014"  # PostgreSQL's query_canceled


def run_finders(
    finders: Iterable[Finder], query: str, limit: int, limit_ms: int
) -> tuple[Group, ...]:
    """Return the results of each finder, at most ``limit``; empty ones are left out."""
    with transaction.atomic():
        before = _set_statement_timeout(f"{limit_ms}ms")
        groups = tuple(_run_finder(finder, query, limit) for finder in finders)
        _set_statement_timeout(before)
    return tuple(group for group in groups if group.hits or group.is_cut)


def _run_finder(finder: Finder, query: str, limit: int) -> Group:
    # A cancelled query rolls back only itself.
    savepoint = transaction.atomic() if finder.asks_database else nullcontext()
    try:
        with savepoint:
            hits = finder.find(query, limit + 1)
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", "") != _QUERY_CANCELED:
            raise
        return Group(finder.key, finder.title, (), is_cut=True)
    return Group(finder.key, finder.title, tuple(hits[:limit]), more=len(hits) > limit)


def _set_statement_timeout(limit: str) -> str:
    """Set the limit for this transaction only, and return the previous one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('statement_timeout'),"
            " set_config('statement_timeout', %s, true)",
            [limit],
        )
        before: str = cursor.fetchone()[0]
    return before
