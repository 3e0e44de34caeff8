"""Indexes of searches, built beside readers and writers: with the fields' own migration they would
hold its locks, and everybody would wait for them."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class AddIndexAnew(AddIndexConcurrently):
    """Whatever has its name is dropped before: what was begun and broken off leaves an index that
    nothing uses, and 0039 once made one of these itself."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        name = schema_editor.quote_name(self.index.name)
        schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        super().database_forwards(app_label, schema_editor, from_state, to_state)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("codegen_app", "0042_remote_workers")]
    operations = [
        AddIndexAnew(
            model_name="build",
            index=models.Index(
                condition=models.Q(instructions__isnull=True, listing__isnull=False),
                fields=["id"],
                name="build_not_counted",
            ),
        ),
        AddIndexAnew(
            model_name="generatedkernel",
            index=GinIndex(fields=["config"], name="kernel_config"),
        ),
    ]
