"""The model's own line of each node that is there, as new ones have it."""

from __future__ import annotations

from typing import Any

from django.db import migrations

_AT_ONCE = 20_000
# The innermost line outside torch, else the innermost: as new nodes get theirs.
_FILL = """
UPDATE codegen_app_graphnode node
SET source = left((
    SELECT (frame ->> 'file') || ':' || (frame ->> 'line')
    FROM jsonb_array_elements(node.frames) WITH ORDINALITY AS frames (frame, place)
    ORDER BY position('/torch/' IN '/' || (frame ->> 'file')) > 0, place DESC
    LIMIT 1
), 500)
WHERE id > %s AND id <= %s AND jsonb_array_length(frames) > 0
"""


def fill(_apps: Any, editor: Any) -> None:
    """Some nodes at a time, by their keys: no reader waits for them."""
    with editor.connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(min(id), 1), coalesce(max(id), 0) FROM codegen_app_graphnode"
        )
        first, last = cursor.fetchone()
        for low in range(first - 1, last, _AT_ONCE):
            cursor.execute(_FILL, [low, low + _AT_ONCE])


class Migration(migrations.Migration):
    atomic = False  # each lot by itself
    dependencies = [("codegen_app", "0039_search")]
    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
