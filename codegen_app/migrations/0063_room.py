"""Room for points: four bytes for each reference to a series, a revision, conditions and a batch,
and indexes without what the table has.

The table of points is written anew, in one statement instead of one for each column, and in one
transaction: a migration that is interrupted leaves everything as it was. Readers wait meanwhile
(deploy/README.md, Backups and upgrades).
"""

import django.contrib.postgres.indexes
from django.db import migrations, models

_WRITE_ANEW = """
ALTER TABLE codegen_app_datum
    ALTER COLUMN series_id TYPE {type},
    ALTER COLUMN revision_id TYPE {type},
    ALTER COLUMN conditions_id TYPE {type},
    ALTER COLUMN batch_id TYPE {type}
"""
# PostgreSQL does not change a column that a trigger names. Triggers of pages are created after
# every migration.
_FREE_COLUMNS = "DROP TRIGGER IF EXISTS kiln_page_changed ON codegen_app_remeasurement"


class Migration(migrations.Migration):
    dependencies = [
        ("codegen_app", "0062_bisection_once_a_series"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="datum",
            name="datum_by_revision",
        ),
        migrations.RemoveIndex(
            model_name="datum",
            name="datum_by_batch",
        ),
        migrations.RemoveIndex(
            model_name="datum",
            name="datum_history",
        ),
        migrations.RemoveIndex(
            model_name="datum",
            name="datum_of_branches",
        ),
        migrations.RunSQL(_FREE_COLUMNS, migrations.RunSQL.noop),
        migrations.RunSQL(_WRITE_ANEW.format(type="integer"), migrations.RunSQL.noop),
        migrations.AlterField(
            model_name="batch",
            name="id",
            field=models.AutoField(primary_key=True, serialize=False),
        ),
        migrations.AlterField(
            model_name="conditions",
            name="id",
            field=models.AutoField(primary_key=True, serialize=False),
        ),
        migrations.AlterField(
            model_name="revision",
            name="id",
            field=models.AutoField(primary_key=True, serialize=False),
        ),
        migrations.AlterField(
            model_name="series",
            name="id",
            field=models.AutoField(primary_key=True, serialize=False),
        ),
        migrations.RunSQL(migrations.RunSQL.noop, _WRITE_ANEW.format(type="bigint")),
        migrations.RunSQL(migrations.RunSQL.noop, _FREE_COLUMNS),
        migrations.AddIndex(
            model_name="datum",
            index=models.Index(
                condition=models.Q(("is_trunk", True)),
                fields=["series", "at"],
                name="datum_history",
            ),
        ),
        migrations.AddIndex(
            model_name="datum",
            index=models.Index(
                condition=models.Q(("is_trunk", False)),
                fields=["series", "at"],
                name="datum_of_branches",
            ),
        ),
        migrations.AddIndex(
            model_name="datum",
            index=models.Index(fields=["revision"], name="datum_by_revision"),
        ),
        migrations.AddIndex(
            model_name="datum",
            index=django.contrib.postgres.indexes.BrinIndex(
                autosummarize=True, fields=["batch"], name="datum_by_batch"
            ),
        ),
    ]
