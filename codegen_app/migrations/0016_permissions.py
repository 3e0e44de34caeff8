"""Permissions of their own for importing, building, selections and schedules, and three groups.

Who might tune so far might do all of these: such accounts and groups keep what they had.
"""

from __future__ import annotations

from typing import Any

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

ADDED = {
    "graph": ("import_graph", "Can import graphs"),
    "build": ("build", "Can ask for builds of kernels, with flags"),
    "selection": ("select", "Can change which kernels serve"),
    "retuneschedule": ("schedule", "Can schedule tuning runs"),
}
RETUNE = ("retune", "Can start and cancel tuning runs")
GROUPS = {
    "Importers": ("import_graph",),
    "Builders": ("import_graph", "build"),
    "Tuners": ("import_graph", "build", "retune", "select", "schedule"),
}


def give(apps: Apps, _: BaseDatabaseSchemaEditor) -> None:
    """Permissions are usually made after all migrations; here they are given, so they are made."""
    made = {name: _permission(apps, model, name, text) for model, (name, text) in ADDED.items()}
    retune = _permission(apps, "tuningrun", *RETUNE)
    for holder in (*retune.group_set.all(), *retune.user_set.all()):
        rights = getattr(holder, "permissions", None) or holder.user_permissions
        rights.add(*made.values())
    made["retune"] = retune
    groups = apps.get_model("auth", "Group")
    for name, rights in GROUPS.items():
        group, new = groups.objects.get_or_create(name=name)
        if new:
            group.permissions.set([made[right] for right in rights])


def _permission(apps: Apps, model: str, codename: str, name: str) -> Any:
    kinds = apps.get_model("contenttypes", "ContentType")
    kind, _ = kinds.objects.get_or_create(app_label="codegen_app", model=model)
    permissions = apps.get_model("auth", "Permission")
    made, _ = permissions.objects.get_or_create(
        content_type=kind, codename=codename, defaults={"name": name}
    )
    return made


class Migration(migrations.Migration):
    dependencies = [
        ("codegen_app", "0015_generator"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        migrations.AlterModelOptions(
            "build",
            {
                "ordering": ["kernel", "target", "pk"],
                "permissions": [("build", "Can ask for builds of kernels, with flags")],
            },
        ),
        migrations.AlterModelOptions(
            "graph",
            {
                "ordering": ["-created_at", "-pk"],
                "permissions": [("import_graph", "Can import graphs")],
            },
        ),
        migrations.AlterModelOptions(
            "retuneschedule",
            {"ordering": ["pk"], "permissions": [("schedule", "Can schedule tuning runs")]},
        ),
        migrations.AlterModelOptions(
            "selection",
            {
                "ordering": ["-since", "-pk"],
                "permissions": [("select", "Can change which kernels serve")],
            },
        ),
        migrations.RunPython(give, migrations.RunPython.noop),
    ]
