from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("codegen_app", "0059_suspicion"),
    ]

    operations = [
        migrations.AddField(
            model_name="revision",
            name="merge_base_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
