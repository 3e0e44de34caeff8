"""Days of old points of which the median stays, by a policy."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("codegen_app", "0063_room"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="DaySummary",
            fields=[
                (
                    "datum",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="day_summary",
                        serialize=False,
                        to="codegen_app.datum",
                    ),
                ),
                ("points", models.PositiveIntegerField()),
                ("low", models.FloatField()),
                ("high", models.FloatField()),
            ],
            options={
                "verbose_name_plural": "day summaries",
                "ordering": ["pk"],
            },
        ),
        migrations.RemoveConstraint(
            model_name="retentionpolicy",
            name="retention_of_what_there_is",
        ),
        migrations.AddField(
            model_name="retentionpolicy",
            name="last_series",
            field=models.PositiveIntegerField(db_default=0, default=0, editable=False),
        ),
        migrations.AddField(
            model_name="series",
            name="rolled_up",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="series",
            name="rolled_up_to",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AlterField(
            model_name="retentionpolicy",
            name="what",
            field=models.CharField(
                choices=[
                    ("samples", "raw samples of points"),
                    ("deliveries", "deliveries of notifications"),
                    ("branches", "points of branches"),
                    ("points", "points, but for the median of each day"),
                ],
                default="samples",
                max_length=10,
            ),
        ),
        migrations.AddConstraint(
            model_name="retentionpolicy",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("what", "samples"),
                    models.Q(("source", ""), ("what__in", ("deliveries", "branches", "points"))),
                    _connector="OR",
                ),
                name="retention_of_what_there_is",
                violation_error_message="only samples have a source: leave it empty",
            ),
        ),
        migrations.AddConstraint(
            model_name="retentionpolicy",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("what", "points"), _negated=True), ("days__gte", 30), _connector="OR"
                ),
                name="retention_of_settled_points",
                violation_error_message="points are judged and bisected for a month: keep all of"
                " them for 30 days or more",
            ),
        ),
        migrations.AddConstraint(
            model_name="daysummary",
            constraint=models.CheckConstraint(
                condition=models.Q(("low__lte", models.F("high")), ("points__gte", 2)),
                name="day_summary_of_several",
            ),
        ),
    ]
