from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("codegen_app", "0032_retention_of_deliveries")]

    operations = [
        migrations.RemoveIndex(model_name="datum", name="datum_history"),
        migrations.AddIndex(
            model_name="datum",
            index=models.Index(
                fields=["series", "at", "id"],
                include=("value", "low", "high", "n", "revision", "conditions", "source"),
                name="datum_history",
            ),
        ),
    ]
