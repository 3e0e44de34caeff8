"""Series count their points at or below 0: by itself, since it reads all points, and the migration
before it holds the locks of its columns."""

from __future__ import annotations

from django.db import migrations

_COUNT = """
UPDATE codegen_app_series AS series SET not_positive = found.n
FROM (
    SELECT series_id, count(*) AS n FROM codegen_app_datum WHERE value <= 0 GROUP BY series_id
) AS found
WHERE series.id = found.series_id
"""


class Migration(migrations.Migration):
    dependencies = [("codegen_app", "0047_withdrawals")]
    operations = [migrations.RunSQL(_COUNT, migrations.RunSQL.noop)]
