"""Branches: which points are of their repository's trunk.

What is stored stays a history where it was one: a repository that was never measured on a usual
trunk gets the branch with the most revisions as its default. Points are marked afterwards, by the
workers. The policy for points of branches deletes nothing where there are some, until somebody
activates it.
"""

from __future__ import annotations

from collections import Counter

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.utils import timezone

import codegen_app.tracking.models.repository

_TRUNK = ("main", "master", "trunk")
_KEPT_DAYS = 30


def _find_trunks(apps: Apps, _: BaseDatabaseSchemaEditor) -> None:
    revisions = apps.get_model("codegen_app", "Revision").objects
    repositories = apps.get_model("codegen_app", "Repository").objects
    rows = revisions.order_by("repository", "branch").values_list("repository", "branch")
    counts: dict[str, Counter[str]] = {}
    for repository, branch in rows.iterator():
        counts.setdefault(repository, Counter())[branch] += 1
    has_branches = False
    for repository, branches in counts.items():
        trunk, default_branch = {"", *_TRUNK}, ""
        names = sorted(name for name in branches if " " not in name)
        if names and not trunk & branches.keys():
            default_branch = max(names, key=branches.__getitem__)
            trunk = {default_branch}
        on_branches = revisions.filter(repository=repository).exclude(branch__in=trunk)
        marked = on_branches.update(is_trunk=False, last_stored_at=timezone.now())
        has_branches |= bool(marked)
        repositories.create(
            name=repository,
            default_branch=default_branch,
            marked_series=0 if marked else None,
        )
    apps.get_model("codegen_app", "RetentionPolicy").objects.get_or_create(
        name="Points of branches",
        defaults={"what": "branches", "days": _KEPT_DAYS, "active": not has_branches},
    )


def _delete_policies(apps: Apps, _: BaseDatabaseSchemaEditor) -> None:
    """Without branches, no policy can be about their points."""
    apps.get_model("codegen_app", "RetentionPolicy").objects.filter(what="branches").delete()


class Migration(migrations.Migration):
    dependencies = [
        ("codegen_app", "0001_squashed_0050_accounted"),
    ]

    operations = [
        migrations.CreateModel(
            name="Repository",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(blank=True, max_length=300, unique=True)),
                (
                    "default_branch",
                    models.CharField(
                        blank=True,
                        help_text="The branch whose history is tracked. Empty: the default branch"
                        " that a client sends, until then main, master, trunk. Several names of a"
                        " renamed branch are separated by spaces.",
                        max_length=500,
                    ),
                ),
                (
                    "commit_url",
                    models.CharField(
                        blank=True,
                        help_text="For example https://forge.example/x/commit/{commit}. Empty: "
                        "derived from the name if it is a web address.",
                        max_length=500,
                        validators=[codegen_app.tracking.models.repository.check_commit_url],
                        verbose_name="URL of a commit",
                    ),
                ),
                (
                    "compare_url",
                    models.CharField(
                        blank=True,
                        help_text="For example https://forge.example/x/compare/{before}...{after}",
                        max_length=500,
                        validators=[codegen_app.tracking.models.repository.check_compare_url],
                        verbose_name="URL of a comparison",
                    ),
                ),
                (
                    "marked_series",
                    models.PositiveBigIntegerField(blank=True, editable=False, null=True),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "verbose_name_plural": "repositories",
                "ordering": ["name"],
            },
        ),
        migrations.RemoveConstraint(
            model_name="retentionpolicy",
            name="retention_of_what_there_is",
        ),
        migrations.RemoveIndex(
            model_name="datum",
            name="datum_history",
        ),
        migrations.AddField(
            model_name="datum",
            name="is_trunk",
            field=models.BooleanField(db_default=True, default=True),
        ),
        migrations.AddField(
            model_name="revision",
            name="is_trunk",
            field=models.BooleanField(db_default=True, default=True),
        ),
        migrations.AddField(
            model_name="revision",
            name="last_stored_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="revision",
            name="merge_base",
            field=models.CharField(blank=True, db_default="", max_length=100),
        ),
        migrations.AddField(
            model_name="revision",
            name="pull_request",
            field=models.CharField(blank=True, db_default="", max_length=300),
        ),
        migrations.AddField(
            model_name="series",
            name="branch_points",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AlterField(
            model_name="retentionpolicy",
            name="what",
            field=models.CharField(
                choices=[
                    ("samples", "raw samples of points"),
                    ("deliveries", "deliveries of notifications"),
                    ("branches", "points of branches"),
                ],
                default="samples",
                max_length=10,
            ),
        ),
        migrations.AddIndex(
            model_name="datum",
            index=models.Index(
                condition=models.Q(("is_trunk", True)),
                fields=["series", "at", "id"],
                include=("value", "low", "high", "n", "revision", "conditions", "source"),
                name="datum_history",
            ),
        ),
        migrations.AddIndex(
            model_name="datum",
            index=models.Index(
                condition=models.Q(("is_trunk", False)),
                fields=["series", "at", "id"],
                name="datum_of_branches",
            ),
        ),
        migrations.AddConstraint(
            model_name="retentionpolicy",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("what", "samples"),
                    models.Q(("source", ""), ("what__in", ("deliveries", "branches"))),
                    _connector="OR",
                ),
                name="retention_of_what_there_is",
                violation_error_message="only samples have a source: leave it empty",
            ),
        ),
        migrations.RunPython(_find_trunks, _delete_policies),
    ]
