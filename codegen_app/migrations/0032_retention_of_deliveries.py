from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("codegen_app", "0031_remeasuring")]

    operations = [
        migrations.RemoveConstraint(model_name="retentionpolicy", name="retention_keeps_days"),
        migrations.RenameField("retentionpolicy", "samples_days", "days"),
        migrations.RenameField("retentionpolicy", "last_points", "last_rows"),
        migrations.RenameField("retentionpolicy", "total_points", "total_rows"),
        migrations.AddField(
            model_name="retentionpolicy",
            name="what",
            field=models.CharField(
                choices=[
                    ("samples", "raw samples of points"),
                    ("deliveries", "deliveries of notifications"),
                ],
                default="samples",
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="retentionpolicy",
            name="source",
            field=models.CharField(
                blank=True,
                choices=[
                    ("tuning", "a tuning run here"),
                    ("again", "measured again here"),
                    ("import", "imported results of Kiln"),
                    ("api", "sent with a token"),
                    ("generated", "generated, not measured"),
                ],
                help_text="Of points; empty: of all",
                max_length=12,
            ),
        ),
        migrations.AddConstraint(
            model_name="retentionpolicy",
            constraint=models.CheckConstraint(
                condition=models.Q(("days__gte", 1), ("days__lte", 36500)),
                name="retention_keeps_days",
            ),
        ),
        migrations.AddConstraint(
            model_name="retentionpolicy",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("what", "samples"),
                    models.Q(("source", ""), ("what", "deliveries")),
                    _connector="OR",
                ),
                name="retention_of_what_there_is",
                violation_error_message="deliveries have no source: leave it empty",
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                condition=models.Q(("state__in", ("delivered", "failed"))),
                fields=["ended_at"],
                name="delivery_ended",
            ),
        ),
    ]
