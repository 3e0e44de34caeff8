"""Limits for a page's database queries: a page waits for no lock and no query for long.

Workers have none: their transactions take long.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.backends.signals import connection_created


def limit_queries() -> None:
    """Limit this process's future connections."""
    connection_created.connect(_limit, dispatch_uid="limits of pages")


def _limit(connection: Any, **_: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('lock_timeout', %s, false),"
            " set_config('statement_timeout', %s, false)",
            [f"{settings.WEB_LOCK_TIMEOUT_S}s", f"{settings.WEB_STATEMENT_TIMEOUT_S}s"],
        )
