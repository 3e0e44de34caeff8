"""What the detector must know to go on where it was, and when a series' data are missing."""

from __future__ import annotations

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("codegen_app", "0026_triage")]

    operations = [
        migrations.AddField("series", "stale_at", models.DateTimeField(null=True, blank=True)),
        migrations.AddIndex(
            "series",
            models.Index(
                fields=["stale_at", "id"],
                condition=Q(stale_at__isnull=False),
                name="series_stale",
            ),
        ),
        migrations.AddField("change", "raised_at", models.DateTimeField(null=True, blank=True)),
        migrations.AddField("change", "shown_at", models.DateTimeField(null=True, blank=True)),
        migrations.AddIndex(
            "change",
            models.Index(
                fields=["revision", "id"],
                condition=Q(raised_at__isnull=True),
                name="change_unraised",
            ),
        ),
    ]
