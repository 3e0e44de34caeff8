"""What remote workers hold may be builds to be measured again."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("codegen_app", "0045_searches_elsewhere")]
    operations = [
        migrations.AlterField(
            model_name="remotelease",
            name="task",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="leases",
                to="codegen_app.tuningtask",
            ),
        ),
        migrations.AddField(
            model_name="remotelease",
            name="remeasurement",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="leases",
                to="codegen_app.remeasurement",
            ),
        ),
        migrations.AddConstraint(
            model_name="remotelease",
            constraint=models.CheckConstraint(
                condition=Q(task__isnull=False, remeasurement__isnull=True)
                | Q(task__isnull=True, remeasurement__isnull=False),
                name="remotelease_of_one",
            ),
        ),
    ]
