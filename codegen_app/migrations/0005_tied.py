"""Ties are a fact of their own; they were told by the text of a candidate's reason."""

from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

_TIED = "tied: within the noise of the fastest"


def mark(apps: Apps, _: BaseDatabaseSchemaEditor) -> None:
    """Candidates whose reason said so."""
    candidates = apps.get_model("codegen_app", "Candidate").objects
    candidates.filter(reason=_TIED).update(tied=True, reason="")


def unmark(apps: Apps, _: BaseDatabaseSchemaEditor) -> None:
    """The text again."""
    apps.get_model("codegen_app", "Candidate").objects.filter(tied=True).update(reason=_TIED)


class Migration(migrations.Migration):
    dependencies = [("codegen_app", "0004_search_strategy")]

    operations = [
        migrations.AddField(
            model_name="candidate",
            name="tied",
            field=models.BooleanField(
                default=False, help_text="Within the noise of the fastest, as others are"
            ),
        ),
        migrations.RunPython(mark, unmark),
    ]
