"""What a kernel's source is called is a fact of the kernel: until now all were HIP."""

from __future__ import annotations

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [
        ("codegen_app", "0005_tied"),
    ]

    operations = [
        migrations.AddField(
            model_name="generatedkernel",
            name="source_file",
            field=models.CharField(default="source.hip", max_length=40),
            preserve_default=False,
        ),
        migrations.RemoveConstraint(
            model_name="generatedkernel", name="generatedkernel_has_source"
        ),
        migrations.AddConstraint(
            model_name="generatedkernel",
            constraint=models.CheckConstraint(
                name="generatedkernel_has_source", condition=~Q(source="") & ~Q(source_file="")
            ),
        ),
    ]
