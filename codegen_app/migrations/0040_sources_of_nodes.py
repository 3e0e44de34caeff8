"""The model's own line of each node that is there, as new ones have it."""

from __future__ import annotations

from typing import Any

from django.db import migrations

_AT_ONCE = 2_000


def fill(apps: Any, _editor: Any) -> None:
    """Some nodes at a time, by their keys: no reader waits for them."""
    nodes = apps.get_model("codegen_app", "GraphNode").objects
    last = 0
    while True:
        rows = list(
            nodes.filter(pk__gt=last).order_by("pk").only("pk", "frames", "source")[:_AT_ONCE]
        )
        if not rows:
            return
        for row in rows:
            row.source = source_of(row.frames)
        nodes.bulk_update([row for row in rows if row.source], ["source"])
        last = rows[-1].pk


def source_of(frames: list[dict[str, Any]]) -> str:
    """The innermost line outside torch, else the innermost: as new nodes get theirs."""
    own = [frame for frame in frames if "/torch/" not in f"/{frame['file']}"]
    frame = next(iter([*own[-1:], *frames[-1:]]), None)
    return f"{frame['file']}:{frame['line']}"[:500] if frame else ""


class Migration(migrations.Migration):
    atomic = False  # each lot by itself
    dependencies = [("codegen_app", "0039_search")]
    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
