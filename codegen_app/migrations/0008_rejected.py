"""One word for what was rejected, in a node's configurations and wherever work stands."""

from __future__ import annotations

from django.db import migrations, models


def _stage() -> models.CharField[str, str]:
    return models.CharField(blank=True, help_text="Where it was rejected.", max_length=16)


class Migration(migrations.Migration):
    dependencies = [("codegen_app", "0007_metrics")]

    operations = [
        migrations.RenameField("templatenode", "refused", "rejected"),
        migrations.AlterField("build", "stage", _stage()),
        migrations.AlterField("graph", "stage", _stage()),
        migrations.AlterField("tuningtask", "stage", _stage()),
    ]
