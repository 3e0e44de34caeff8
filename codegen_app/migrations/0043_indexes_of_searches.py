"""Indexes of searches, built beside readers and writers: with the fields' own migration they would
hold its locks, and everybody would wait for them."""

from __future__ import annotations

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("codegen_app", "0042_remote_workers")]
    operations = [
        AddIndexConcurrently(
            model_name="build",
            index=models.Index(
                condition=models.Q(instructions__isnull=True, listing__isnull=False),
                fields=["id"],
                name="build_not_counted",
            ),
        ),
        AddIndexConcurrently(
            model_name="generatedkernel",
            index=GinIndex(fields=["config"], name="kernel_config"),
        ),
    ]
