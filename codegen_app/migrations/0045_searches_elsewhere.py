"""What remote workers that search have spent, may ask for, and have asked for."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("codegen_app", "0044_checks_of_before")]
    operations = [
        migrations.AddField(
            model_name="remotelease",
            name="spent_s",
            field=models.FloatField(default=0),
        ),
        migrations.AddField(
            model_name="remotelease",
            name="offered",
            field=models.JSONField(blank=True, default=dict, null=True),
        ),
        migrations.AddField(
            model_name="remotelease",
            name="asked",
            field=models.JSONField(blank=True, default=list),
        ),
    ]
