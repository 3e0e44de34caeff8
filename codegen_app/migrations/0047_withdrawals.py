"""Points can be withdrawn; series count those and the ones of which no ratio can be taken."""

from __future__ import annotations

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [
        ("codegen_app", "0046_remeasuring_elsewhere"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [
        *(
            migrations.AddField(
                model_name="series",
                name=name,
                field=models.PositiveIntegerField(db_default=0, default=0),
            )
            for name in ("not_positive", "withdrawn")
        ),
        migrations.CreateModel(
            name="Withdrawal",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("reason", models.CharField(max_length=500)),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("restored_at", models.DateTimeField(blank=True, null=True)),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "restored_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "datum",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="withdrawals",
                        to="codegen_app.datum",
                    ),
                ),
                (
                    "series",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="withdrawals",
                        to="codegen_app.series",
                    ),
                ),
            ],
            options={
                "ordering": ["series", "pk"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=["datum"],
                        condition=Q(restored_at__isnull=True),
                        name="withdrawal_once_a_point",
                    ),
                    models.CheckConstraint(name="withdrawal_has_reason", condition=~Q(reason="")),
                ],
            },
        ),
    ]
