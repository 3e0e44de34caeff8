"""Bisections: the search for the revision that changed a series."""

from __future__ import annotations

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("codegen_app", "0057_series_findings"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Bisection",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("before", models.FloatField()),
                ("after", models.FloatField()),
                ("noise", models.FloatField()),
                ("limit", models.PositiveIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "open"),
                            ("done", "done"),
                            ("stopped", "stopped"),
                            ("cancelled", "cancelled"),
                        ],
                        default="open",
                        max_length=12,
                    ),
                ),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "alert",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="bisections",
                        to="codegen_app.alert",
                    ),
                ),
                (
                    "bad",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="codegen_app.revision",
                    ),
                ),
                (
                    "culprit",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="codegen_app.revision",
                    ),
                ),
                (
                    "good",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="codegen_app.revision",
                    ),
                ),
                (
                    "requested_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "series",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="bisections",
                        to="codegen_app.series",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
            },
        ),
        migrations.AddField(
            model_name="measurementrequest",
            name="bisection",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="requests",
                to="codegen_app.bisection",
            ),
        ),
        migrations.CreateModel(
            name="SkippedRevision",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("reason", models.CharField(max_length=500)),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "bisection",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="skipped",
                        to="codegen_app.bisection",
                    ),
                ),
                (
                    "revision",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="codegen_app.revision",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.AddConstraint(
            model_name="bisection",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "open")),
                fields=("alert", "series"),
                name="bisection_once_open",
            ),
        ),
        migrations.AddConstraint(
            model_name="bisection",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["open", "done", "stopped", "cancelled"])),
                name="bisection_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="bisection",
            constraint=models.CheckConstraint(
                condition=models.Q(("after__gt", 0), ("before__gt", 0), ("noise__gt", 0)),
                name="bisection_levels_above_zero",
            ),
        ),
        migrations.AddConstraint(
            model_name="skippedrevision",
            constraint=models.UniqueConstraint(
                fields=("bisection", "revision"), name="skippedrevision_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="skippedrevision",
            constraint=models.CheckConstraint(
                condition=models.Q(("reason", ""), _negated=True), name="skippedrevision_has_reason"
            ),
        ),
    ]
