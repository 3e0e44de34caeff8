"""Rows of before are held to the checks that came with new columns, beside readers and writers:
within the columns' own migrations everybody would wait while a million rows are read."""

from __future__ import annotations

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations

_INSTRUCTIONS = (
    "ALTER TABLE codegen_app_build VALIDATE CONSTRAINT codegen_app_build_instructions_check"
)


class Migration(migrations.Migration):
    dependencies = [("codegen_app", "0043_indexes_of_searches")]
    operations = [
        ValidateConstraint(model_name="candidate", name="candidate_done_has_result"),
        migrations.RunSQL(_INSTRUCTIONS, migrations.RunSQL.noop),
    ]
