"""What waits for a transaction, in tests of work that happens at once."""

from __future__ import annotations

from django.db import connection


def somebody_waits() -> bool:
    """For this transaction, not for any of those of other tests on this server."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks"
            " WHERE NOT granted AND transactionid = pg_current_xact_id()::xid)"
        )
        return bool(cursor.fetchone()[0])
