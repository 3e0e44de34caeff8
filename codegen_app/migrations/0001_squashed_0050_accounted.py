"""The migrations 0001 to 0050 as one: all tables, and what only a new database lacks.

Models and fields are in the order that ``makemigrations`` needs. A database that has all of
``replaces`` has nothing to do; one that has only some is rejected (``platform/squashed.py``).
"""

from __future__ import annotations

from typing import Any

from django.apps.registry import Apps
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models.functions import Abs, Ln
from django.utils import timezone

_STATES = [
    ("queued", "Queued"),
    ("running", "Running"),
    ("done", "Done"),
    ("rejected", "Rejected"),
    ("cancelled", "Cancelled"),
    ("quarantined", "Quarantined"),
]
# Deleting an account clears the reference to it: the only update that an entry allows.
_GUARD = """
CREATE FUNCTION kiln_guard_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND OLD.at < now() - interval '29 days' THEN
        RETURN OLD;
    END IF;
    IF TG_OP = 'UPDATE' AND NEW.actor_id IS NULL
        AND to_jsonb(NEW) - 'actor_id' = to_jsonb(OLD) - 'actor_id' THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'entries of the audit log are not changed';
END $$;
CREATE TRIGGER kiln_guard_audit BEFORE UPDATE OR DELETE ON codegen_app_auditentry
    FOR EACH ROW EXECUTE FUNCTION kiln_guard_audit();
"""
_UNGUARD = """
DROP TRIGGER kiln_guard_audit ON codegen_app_auditentry;
DROP FUNCTION kiln_guard_audit();
"""
# A message is a row for a moment: its space is reused at once, not at a fifth of the table.
_AUTOVACUUM = """
ALTER TABLE codegen_app_message SET (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 10000)"""
_PERMISSIONS = {
    "import_graph": ("graph", "Can import graphs"),
    "build": ("build", "Can ask for builds of kernels, with flags"),
    "retune": ("tuningrun", "Can start and cancel tuning runs"),
    "select": ("selection", "Can change which kernels serve"),
    "schedule": ("retuneschedule", "Can schedule tuning runs"),
}
_GROUPS = {
    "Importers": ("import_graph",),
    "Builders": ("import_graph", "build"),
    "Tuners": ("import_graph", "build", "retune", "select", "schedule"),
}


def _create_groups(apps: Apps, _: BaseDatabaseSchemaEditor) -> None:
    """Create the default groups. Django creates permissions after all migrations; these groups
    need theirs now."""
    permissions = {name: _permission(apps, name) for name in _PERMISSIONS}
    groups = apps.get_model("auth", "Group")
    for name, allowed in _GROUPS.items():
        group, created = groups.objects.get_or_create(name=name)
        if created:
            group.permissions.set([permissions[one] for one in allowed])


def _permission(apps: Apps, codename: str) -> Any:
    model, title = _PERMISSIONS[codename]
    content_types = apps.get_model("contenttypes", "ContentType")
    content_type, _ = content_types.objects.get_or_create(app_label="codegen_app", model=model)
    permission, _ = apps.get_model("auth", "Permission").objects.get_or_create(
        content_type=content_type, codename=codename, defaults={"name": title}
    )
    return permission


def _id() -> models.BigAutoField[int, int]:
    return models.BigAutoField(
        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
    )


class Migration(migrations.Migration):
    initial = True
    replaces = [
        ("codegen_app", "0001_initial"),
        ("codegen_app", "0002_retuning"),
        ("codegen_app", "0003_problem_work"),
        ("codegen_app", "0004_search_strategy"),
        ("codegen_app", "0005_tied"),
        ("codegen_app", "0006_source_file"),
        ("codegen_app", "0007_metrics"),
        ("codegen_app", "0008_rejected"),
        ("codegen_app", "0009_readings"),
        ("codegen_app", "0010_audit_origin"),
        ("codegen_app", "0011_faults"),
        ("codegen_app", "0012_messages"),
        ("codegen_app", "0013_planning"),
        ("codegen_app", "0014_fence"),
        ("codegen_app", "0015_generator"),
        ("codegen_app", "0016_permissions"),
        ("codegen_app", "0017_packing"),
        ("codegen_app", "0018_requested"),
        ("codegen_app", "0019_intermediate"),
        ("codegen_app", "0020_result_import"),
        ("codegen_app", "0021_candidate_without_build"),
        ("codegen_app", "0022_series"),
        ("codegen_app", "0023_track"),
        ("codegen_app", "0026_triage"),
        ("codegen_app", "0027_detection"),
        ("codegen_app", "0028_generated_and_again"),
        ("codegen_app", "0029_test_messages"),
        ("codegen_app", "0030_retention"),
        ("codegen_app", "0031_remeasuring"),
        ("codegen_app", "0032_retention_of_deliveries"),
        ("codegen_app", "0033_history_index"),
        ("codegen_app", "0034_fewer_indexes"),
        ("codegen_app", "0035_modelling"),
        ("codegen_app", "0036_modelled_candidates"),
        ("codegen_app", "0037_foreign_kernels"),
        ("codegen_app", "0038_legal_by_target"),
        ("codegen_app", "0039_search"),
        ("codegen_app", "0040_sources_of_nodes"),
        ("codegen_app", "0041_identities"),
        ("codegen_app", "0042_remote_workers"),
        ("codegen_app", "0043_indexes_of_searches"),
        ("codegen_app", "0044_checks_of_before"),
        ("codegen_app", "0045_searches_elsewhere"),
        ("codegen_app", "0046_remeasuring_elsewhere"),
        ("codegen_app", "0047_withdrawals"),
        ("codegen_app", "0048_not_positive"),
        ("codegen_app", "0049_torch_comparison"),
        ("codegen_app", "0050_accounted"),
    ]
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]
    operations = [
        migrations.CreateModel(
            name="Environment",
            fields=[
                ("id", _id()),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("device", models.CharField(help_text="cpu, rocm:0 …", max_length=32)),
                ("device_name", models.CharField(max_length=200)),
                ("target", models.CharField(max_length=24)),
                ("driver", models.CharField(blank=True, max_length=200)),
                ("runtime", models.CharField(blank=True, max_length=200)),
                ("compiler", models.CharField(max_length=200)),
                ("compute_units", models.PositiveIntegerField()),
                ("memory_bytes", models.PositiveBigIntegerField()),
                ("emulated", models.BooleanField()),
                ("attributes", models.JSONField(default=dict)),
                ("first_seen_at", models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name="GeneratedKernel",
            fields=[
                ("id", _id()),
                ("name", models.CharField(max_length=200, unique=True)),
                ("source_digest", models.CharField(max_length=64, unique=True)),
                ("template", models.CharField(max_length=64)),
                ("config", models.JSONField(default=dict)),
                ("source", models.TextField()),
                ("source_file", models.CharField(max_length=40)),
                ("args", models.JSONField(default=list)),
                ("launches", models.JSONField(default=list)),
                ("workspace_bytes", models.CharField(default="0", max_length=500)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={"ordering": ["name"]},
        ),
        migrations.CreateModel(
            name="Round",
            fields=[
                ("id", _id()),
                ("name", models.CharField(max_length=40, unique=True)),
                ("begun_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Alert",
            fields=[
                ("id", _id()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("regression", "regression"),
                            ("improvement", "improvement"),
                            ("missing", "missing data"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("new", "new"),
                            ("acknowledged", "acknowledged"),
                            ("investigating", "investigating"),
                            ("expected", "expected"),
                            ("fixed", "fixed"),
                            ("invalid", "invalid"),
                        ],
                        default="new",
                        max_length=14,
                    ),
                ),
                ("n_series", models.PositiveIntegerField(default=0)),
                ("worst_ratio", models.FloatField(blank=True, null=True)),
                (
                    "cause",
                    models.CharField(
                        blank=True, help_text="Of the change of worst_ratio", max_length=20
                    ),
                ),
                (
                    "at",
                    models.DateTimeField(
                        help_text="Its place in the history: the revision's moment"
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("changed_at", models.DateTimeField(auto_now=True)),
                ("recovered_at", models.DateTimeField(blank=True, null=True)),
                (
                    "assignee",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="alerts",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "downstream_of",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="downstream",
                        to="codegen_app.alert",
                    ),
                ),
                (
                    "duplicate_of",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="duplicates",
                        to="codegen_app.alert",
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-pk"],
                "permissions": [("triage", "Can triage alerts, set thresholds and baselines")],
            },
        ),
        migrations.CreateModel(
            name="AlertEvent",
            fields=[
                ("id", _id()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("raised", "raised"),
                            ("grew", "more series"),
                            ("recovered", "back at the level before"),
                            ("state", "state"),
                            ("assignee", "assignee"),
                            ("note", "note"),
                            ("link", "link"),
                            ("undo", "taken back"),
                        ],
                        max_length=10,
                    ),
                ),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("note", models.TextField(blank=True)),
                ("before", models.JSONField(blank=True, default=dict)),
                ("after", models.JSONField(blank=True, default=dict)),
                ("act", models.UUIDField(blank=True, null=True)),
                (
                    "alert",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="events", to="codegen_app.alert"
                    ),
                ),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "undoes",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="undone_by",
                        to="codegen_app.alertevent",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("act__isnull", False)),
                        fields=["act"],
                        name="alertevent_by_act",
                    ),
                    models.Index(
                        condition=models.Q(("act__isnull", False)),
                        fields=["by", "-id"],
                        name="alertevent_own_latest",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "kind__in",
                                [
                                    "raised",
                                    "grew",
                                    "recovered",
                                    "state",
                                    "assignee",
                                    "note",
                                    "link",
                                    "undo",
                                ],
                            )
                        ),
                        name="alertevent_kind_known",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                ("id", _id()),
                ("digest", models.CharField(max_length=64, unique=True)),
                (
                    "prefix",
                    models.CharField(help_text="How it begins, to be told by", max_length=16),
                ),
                ("name", models.CharField(help_text="What it is for", max_length=100)),
                (
                    "scopes",
                    ArrayField(
                        base_field=models.CharField(
                            choices=[
                                ("ingest", "send results"),
                                ("read", "read series"),
                                (
                                    "worker",
                                    "be a worker: take measurements and send what came of them",
                                ),
                            ],
                            max_length=8,
                        ),
                        size=None,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("used_at", models.DateTimeField(blank=True, help_text="To the minute", null=True)),
                ("requests_left", models.FloatField(blank=True, null=True)),
                ("points_left", models.FloatField(blank=True, null=True)),
                ("allowed_at", models.DateTimeField(blank=True, null=True)),
                ("worker_name", models.CharField(blank=True, max_length=60)),
                ("worker_queue", models.CharField(blank=True, max_length=40)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=models.CASCADE,
                        related_name="api_tokens",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "API token",
                "ordering": ["-created_at", "-pk"],
                "permissions": [("make_tokens", "Can make and revoke API tokens")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("scopes__contained_by", ["ingest", "read", "worker"]),
                            ("scopes__len__gte", 1),
                        ),
                        name="apitoken_scopes_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("scopes", ["worker"]), models.Q(("worker_name", ""), _negated=True)
                            ),
                            models.Q(
                                models.Q(("scopes__contains", ["worker"]), _negated=True),
                                ("worker_name", ""),
                                ("worker_queue", ""),
                            ),
                            _connector="OR",
                        ),
                        name="apitoken_of_a_worker_is_for_that_alone",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("expires_at__isnull", True),
                            ("expires_at__gt", models.F("created_at")),
                            _connector="OR",
                        ),
                        name="apitoken_ends_after_it_began",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Artifact",
            fields=[
                ("id", _id()),
                (
                    "digest",
                    models.CharField(
                        max_length=64, unique=True, validators=[RegexValidator("^[0-9a-f]{64}$")]
                    ),
                ),
                ("size_bytes", models.PositiveBigIntegerField()),
                ("path", models.CharField(max_length=200, unique=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "used_at",
                    models.DateTimeField(default=timezone.now, help_text="When it was last stored"),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("digest__regex", "^[0-9a-f]{64}$")),
                        name="artifact_digest_is_sha256",
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                ("id", _id()),
                ("at", models.DateTimeField(auto_now_add=True, db_index=True)),
                ("actor_name", models.CharField(blank=True, max_length=150)),
                ("address", models.GenericIPAddressField(blank=True, null=True)),
                ("user_agent", models.CharField(blank=True, max_length=200)),
                ("action", models.CharField(max_length=40)),
                ("what", models.CharField(max_length=200)),
                ("why", models.CharField(blank=True, max_length=500)),
                (
                    "actor",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.SET_NULL,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={"verbose_name_plural": "audit entries", "ordering": ["-at", "-pk"]},
        ),
        migrations.CreateModel(
            name="Batch",
            fields=[
                ("id", _id()),
                ("key", models.CharField(max_length=200)),
                ("body_digest", models.CharField(max_length=64)),
                ("answer", models.JSONField(default=dict)),
                ("received_at", models.DateTimeField(auto_now_add=True)),
                (
                    "token",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="batches",
                        to="codegen_app.apitoken",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "batches",
                "ordering": ["-received_at", "-pk"],
                "constraints": [
                    models.UniqueConstraint(fields=("token", "key"), name="batch_key_once_a_token"),
                    models.CheckConstraint(
                        condition=models.Q(("key", ""), _negated=True), name="batch_has_key"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Build",
            fields=[
                ("id", _id()),
                ("state", models.CharField(choices=_STATES, default="queued", max_length=12)),
                (
                    "priority",
                    models.SmallIntegerField(default=0, help_text="Higher is taken first."),
                ),
                ("claim", models.CharField(blank=True, max_length=160)),
                ("worker", models.CharField(blank=True, max_length=120)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("heartbeat_at", models.DateTimeField(blank=True, null=True)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("deaths", models.PositiveSmallIntegerField(default=0)),
                ("faults", models.PositiveSmallIntegerField(default=0)),
                (
                    "again_at",
                    models.DateTimeField(blank=True, help_text="Not tried before", null=True),
                ),
                (
                    "stage",
                    models.CharField(blank=True, help_text="Where it was rejected.", max_length=16),
                ),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("detail", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("target", models.CharField(max_length=24)),
                ("flags", models.JSONField(default=list)),
                (
                    "toolchain",
                    models.CharField(help_text="rocm, system, bundled, nvcc", max_length=32),
                ),
                ("toolchain_version", models.CharField(max_length=200)),
                ("toolchain_digest", models.CharField(max_length=64)),
                ("code_digest", models.CharField(blank=True, max_length=64)),
                (
                    "duration_s",
                    models.FloatField(blank=True, help_text="The compiler's time", null=True),
                ),
                (
                    "cached",
                    models.BooleanField(
                        default=False, help_text="Nothing was compiled for this row"
                    ),
                ),
                (
                    "requested",
                    models.BooleanField(
                        default=False,
                        help_text="A person asked for it: it is built whoever else waits for it",
                    ),
                ),
                ("log", models.TextField(blank=True)),
                ("diagnostics", models.JSONField(default=list)),
                ("resources", models.JSONField(default=dict)),
                (
                    "instructions",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Of its listing, once they are counted for searches",
                        null=True,
                    ),
                ),
                (
                    "code_object",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="+",
                        to="codegen_app.artifact",
                    ),
                ),
                (
                    "intermediate",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="+",
                        to="codegen_app.artifact",
                    ),
                ),
                (
                    "library",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="+",
                        to="codegen_app.artifact",
                    ),
                ),
                (
                    "listing",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="+",
                        to="codegen_app.artifact",
                    ),
                ),
                (
                    "kernel",
                    models.ForeignKey(
                        on_delete=models.PROTECT,
                        related_name="builds",
                        to="codegen_app.generatedkernel",
                    ),
                ),
            ],
            options={
                "ordering": ["kernel", "target", "pk"],
                "permissions": [("build", "Can ask for builds of kernels, with flags")],
                "abstract": False,
                "indexes": [
                    models.Index(fields=["state", "-priority", "id"], name="build_queue"),
                    models.Index(
                        condition=models.Q(
                            ("instructions__isnull", True), ("listing__isnull", False)
                        ),
                        fields=["id"],
                        name="build_not_counted",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "queued",
                                    "running",
                                    "done",
                                    "rejected",
                                    "cancelled",
                                    "quarantined",
                                ],
                            )
                        ),
                        name="build_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("lease_until__isnull", False), ("state", "running")),
                            models.Q(
                                models.Q(("state", "running"), _negated=True),
                                ("lease_until__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="build_lease_while_running",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state__in", ["rejected", "quarantined"]), _negated=True),
                            models.Q(("reason", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="build_loss_has_reason",
                    ),
                    models.UniqueConstraint(
                        fields=(
                            "kernel",
                            "target",
                            "flags",
                            "toolchain",
                            "toolchain_version",
                            "toolchain_digest",
                        ),
                        name="build_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "done"), _negated=True),
                            models.Q(
                                models.Q(("code_digest", ""), _negated=True),
                                ("library__isnull", False),
                                ("duration_s__gte", 0),
                            ),
                            _connector="OR",
                        ),
                        name="build_done_has_code",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="BenchmarkResult",
            fields=[
                ("id", _id()),
                ("bindings", models.JSONField(default=dict)),
                ("samples_ns", ArrayField(base_field=models.FloatField(), size=None)),
                ("batch", models.PositiveIntegerField()),
                ("median_ns", models.FloatField()),
                ("low_ns", models.FloatField()),
                ("high_ns", models.FloatField()),
                ("metrics", models.JSONField(default=dict)),
                ("readings", models.JSONField(default=dict)),
                ("rejected_samples", models.JSONField(default=list)),
                ("check_max_error", models.FloatField()),
                ("check_bound", models.FloatField()),
                ("check_ratio", models.FloatField()),
                ("check_detail", models.TextField(blank=True)),
                ("emulated", models.BooleanField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "build",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="results", to="codegen_app.build"
                    ),
                ),
                (
                    "environment",
                    models.ForeignKey(
                        on_delete=models.PROTECT,
                        related_name="results",
                        to="codegen_app.environment",
                    ),
                ),
                (
                    "kernel",
                    models.ForeignKey(
                        on_delete=models.PROTECT,
                        related_name="results",
                        to="codegen_app.generatedkernel",
                    ),
                ),
            ],
            options={"ordering": ["-created_at", "-pk"]},
        ),
        migrations.CreateModel(
            name="Channel",
            fields=[
                ("id", _id()),
                ("name", models.CharField(max_length=100, unique=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[("webhook", "webhook"), ("email", "e-mail")], max_length=8
                    ),
                ),
                ("address", models.TextField()),
                (
                    "alerts",
                    ArrayField(
                        base_field=models.CharField(
                            choices=[
                                ("regression", "regression"),
                                ("improvement", "improvement"),
                                ("missing", "missing data"),
                            ],
                            max_length=12,
                        ),
                        size=None,
                    ),
                ),
                ("search", models.CharField(blank=True, max_length=200)),
                ("active", models.BooleanField(default=True)),
                ("key_salt", models.CharField(blank=True, max_length=32)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "permissions": [("notify", "Can say who is told of alerts")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["webhook", "email"])),
                        name="channel_kind_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("alerts__contained_by", ["regression", "improvement", "missing"]),
                            ("alerts__len__gte", 1),
                        ),
                        name="channel_alerts_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Conditions",
            fields=[
                ("id", _id()),
                ("digest", models.CharField(max_length=64)),
                ("facts", models.JSONField(default=dict)),
            ],
            options={
                "verbose_name_plural": "conditions",
                "constraints": [
                    models.UniqueConstraint(fields=("digest",), name="conditions_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Datum",
            fields=[
                ("id", _id()),
                ("at", models.DateTimeField()),
                ("measured_at", models.DateTimeField()),
                ("value", models.FloatField()),
                ("low", models.FloatField(blank=True, null=True)),
                ("high", models.FloatField(blank=True, null=True)),
                ("n", models.PositiveIntegerField(default=1)),
                (
                    "samples",
                    ArrayField(base_field=models.FloatField(), blank=True, null=True, size=None),
                ),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("tuning", "a tuning run here"),
                            ("again", "measured again here"),
                            ("import", "imported results of Kiln"),
                            ("api", "sent with a token"),
                            ("generated", "generated, not measured"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "batch",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="data",
                        to="codegen_app.batch",
                    ),
                ),
                (
                    "build",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="data",
                        to="codegen_app.build",
                    ),
                ),
                (
                    "conditions",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.PROTECT,
                        related_name="+",
                        to="codegen_app.conditions",
                    ),
                ),
                (
                    "result",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="data",
                        to="codegen_app.benchmarkresult",
                    ),
                ),
                (
                    "kernel",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="data",
                        to="codegen_app.generatedkernel",
                    ),
                ),
            ],
            options={"verbose_name_plural": "data", "ordering": ["series", "at", "pk"]},
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                ("id", _id()),
                ("key", models.UUIDField(unique=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "pending"),
                            ("delivered", "delivered"),
                            ("failed", "failed"),
                        ],
                        default="pending",
                        max_length=10,
                    ),
                ),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("next_at", models.DateTimeField()),
                (
                    "status",
                    models.PositiveIntegerField(
                        blank=True, help_text="HTTP's, of a webhook", null=True
                    ),
                ),
                ("error", models.CharField(blank=True, max_length=500)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "channel",
                    models.ForeignKey(
                        on_delete=models.CASCADE,
                        related_name="deliveries",
                        to="codegen_app.channel",
                    ),
                ),
                (
                    "event",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="deliveries",
                        to="codegen_app.alertevent",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "deliveries",
                "ordering": ["-pk"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "pending")),
                        fields=["next_at"],
                        name="delivery_due",
                    ),
                    models.Index(fields=["channel", "-id"], name="delivery_of_channel"),
                    models.Index(
                        condition=models.Q(("state__in", ("delivered", "failed"))),
                        fields=["ended_at"],
                        name="delivery_ended",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("channel", "event"), name="delivery_once"),
                    models.CheckConstraint(
                        condition=models.Q(("state__in", ["pending", "delivered", "failed"])),
                        name="delivery_state_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ForeignKernel",
            fields=[
                ("id", _id()),
                ("state", models.CharField(choices=_STATES, default="queued", max_length=12)),
                (
                    "priority",
                    models.SmallIntegerField(default=0, help_text="Higher is taken first."),
                ),
                ("claim", models.CharField(blank=True, max_length=160)),
                ("worker", models.CharField(blank=True, max_length=120)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("heartbeat_at", models.DateTimeField(blank=True, null=True)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("deaths", models.PositiveSmallIntegerField(default=0)),
                ("faults", models.PositiveSmallIntegerField(default=0)),
                (
                    "again_at",
                    models.DateTimeField(blank=True, help_text="Not tried before", null=True),
                ),
                (
                    "stage",
                    models.CharField(blank=True, help_text="Where it was rejected.", max_length=16),
                ),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("detail", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("name", models.CharField(max_length=200)),
                ("launch", models.TextField()),
                ("target", models.CharField(max_length=24)),
                ("board", models.CharField(max_length=60)),
                ("phase", models.CharField(blank=True, max_length=16)),
                ("function", models.CharField(blank=True, max_length=4096)),
                ("version", models.PositiveSmallIntegerField(default=0)),
                ("low_us", models.FloatField(blank=True, null=True)),
                ("time_us", models.FloatField(blank=True, null=True)),
                ("high_us", models.FloatField(blank=True, null=True)),
                ("sentence", models.TextField(blank=True)),
                (
                    "file",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="+", to="codegen_app.artifact"
                    ),
                ),
                (
                    "listing",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="+",
                        to="codegen_app.artifact",
                    ),
                ),
                (
                    "report",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="+",
                        to="codegen_app.artifact",
                    ),
                ),
                (
                    "requested_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-pk"],
                "abstract": False,
                "indexes": [
                    models.Index(fields=["state", "-priority", "id"], name="foreign_kernel_queue")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "queued",
                                    "running",
                                    "done",
                                    "rejected",
                                    "cancelled",
                                    "quarantined",
                                ],
                            )
                        ),
                        name="foreignkernel_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("lease_until__isnull", False), ("state", "running")),
                            models.Q(
                                models.Q(("state", "running"), _negated=True),
                                ("lease_until__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="foreignkernel_lease_while_running",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state__in", ["rejected", "quarantined"]), _negated=True),
                            models.Q(("reason", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="foreignkernel_loss_has_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "done"), _negated=True),
                            models.Q(
                                ("high_us__gte", models.F("time_us")),
                                ("listing__isnull", False),
                                ("low_us__gt", 0),
                                ("report__isnull", False),
                                ("time_us__gte", models.F("low_us")),
                            ),
                            _connector="OR",
                        ),
                        name="foreign_kernel_done_has_report",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Graph",
            fields=[
                ("id", _id()),
                ("state", models.CharField(choices=_STATES, default="queued", max_length=12)),
                (
                    "priority",
                    models.SmallIntegerField(default=0, help_text="Higher is taken first."),
                ),
                ("claim", models.CharField(blank=True, max_length=160)),
                ("worker", models.CharField(blank=True, max_length=120)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("heartbeat_at", models.DateTimeField(blank=True, null=True)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("deaths", models.PositiveSmallIntegerField(default=0)),
                ("faults", models.PositiveSmallIntegerField(default=0)),
                (
                    "again_at",
                    models.DateTimeField(blank=True, help_text="Not tried before", null=True),
                ),
                (
                    "stage",
                    models.CharField(blank=True, help_text="Where it was rejected.", max_length=16),
                ),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("detail", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("name", models.CharField(max_length=200)),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("producer", models.CharField(blank=True, max_length=200)),
                ("symbols", models.JSONField(default=dict)),
                ("inputs", models.JSONField(default=list)),
                ("outputs", models.JSONField(default=list)),
                ("tensors", models.JSONField(default=dict)),
                ("targets", models.JSONField(default=list)),
                ("node_count", models.PositiveIntegerField()),
                (
                    "decisions",
                    models.JSONField(
                        default=list, help_text="Fusion: [{producer, consumer, fused, reason}]"
                    ),
                ),
                (
                    "accounted",
                    models.CharField(
                        blank=True,
                        help_text="What became of its nodes, once prepared",
                        max_length=200,
                    ),
                ),
                ("wrapper", models.TextField(blank=True, help_text="wrapper.py, once prepared")),
                (
                    "file",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="graphs", to="codegen_app.artifact"
                    ),
                ),
                (
                    "imported_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.SET_NULL,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-pk"],
                "permissions": [("import_graph", "Can import graphs")],
                "abstract": False,
                "indexes": [models.Index(fields=["state", "-priority", "id"], name="graph_queue")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "queued",
                                    "running",
                                    "done",
                                    "rejected",
                                    "cancelled",
                                    "quarantined",
                                ],
                            )
                        ),
                        name="graph_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("lease_until__isnull", False), ("state", "running")),
                            models.Q(
                                models.Q(("state", "running"), _negated=True),
                                ("lease_until__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="graph_lease_while_running",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state__in", ["rejected", "quarantined"]), _negated=True),
                            models.Q(("reason", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="graph_loss_has_reason",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="GraphNode",
            fields=[
                ("id", _id()),
                ("position", models.PositiveIntegerField()),
                ("name", models.CharField(max_length=200)),
                ("target", models.CharField(max_length=200)),
                ("arguments", models.JSONField(default=dict)),
                ("inputs", models.JSONField(default=list)),
                ("outputs", models.JSONField(default=list)),
                ("module_path", models.CharField(blank=True, max_length=500)),
                ("module_type", models.CharField(blank=True, max_length=300)),
                ("torch_function", models.CharField(blank=True, max_length=300)),
                ("frames", models.JSONField(default=list)),
                ("source", models.CharField(blank=True, max_length=500)),
                (
                    "graph",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="nodes", to="codegen_app.graph"
                    ),
                ),
            ],
            options={
                "ordering": ["graph", "position"],
                "constraints": [
                    models.UniqueConstraint(fields=("graph", "name"), name="graphnode_name_once"),
                    models.UniqueConstraint(
                        fields=("graph", "position"), name="graphnode_position_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("target", ""), _negated=True),
                        name="graphnode_has_target",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Identity",
            fields=[
                ("id", _id()),
                ("issuer", models.CharField(max_length=255)),
                ("subject", models.CharField(max_length=255)),
                ("made_at", models.DateTimeField(auto_now_add=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=models.CASCADE,
                        related_name="identities",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "identities",
                "ordering": ["pk"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("issuer", "subject"), name="identity_is_of_one_account"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="KernelUse",
            fields=[
                ("id", _id()),
                (
                    "position",
                    models.PositiveIntegerField(help_text="Order in which the engine offers it"),
                ),
                ("is_default", models.BooleanField(default=False)),
                ("description", models.CharField(blank=True, max_length=300)),
                ("call", models.JSONField(default=dict)),
                ("metadata_comment", models.TextField(blank=True)),
                ("line_origins", models.JSONField(default=list)),
                ("generator", models.CharField(blank=True, editable=False, max_length=64)),
                (
                    "kernel",
                    models.ForeignKey(
                        on_delete=models.PROTECT,
                        related_name="uses",
                        to="codegen_app.generatedkernel",
                    ),
                ),
            ],
            options={"ordering": ["template_node", "position"]},
        ),
        migrations.CreateModel(
            name="Message",
            fields=[
                ("id", _id()),
                ("queue", models.CharField(max_length=200)),
                ("body", models.TextField()),
                ("session", models.IntegerField(blank=True, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("session__isnull", True)),
                        fields=["queue", "id"],
                        name="message_waiting",
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="Mnemonic",
            fields=[("id", _id()), ("name", models.CharField(max_length=100, unique=True))],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("name", ""), _negated=True), name="mnemonic_has_name"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="InstructionUse",
            fields=[
                ("id", _id()),
                ("count", models.PositiveIntegerField()),
                (
                    "build",
                    models.ForeignKey(
                        on_delete=models.CASCADE,
                        related_name="instruction_uses",
                        to="codegen_app.build",
                    ),
                ),
                (
                    "mnemonic",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="uses", to="codegen_app.mnemonic"
                    ),
                ),
            ],
            options={
                "ordering": ["build", "-count"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("mnemonic", "build"), name="instructionuse_once_a_build"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("count__gt", 0)), name="instructionuse_is_there"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Modelling",
            fields=[
                ("id", _id()),
                ("state", models.CharField(choices=_STATES, default="queued", max_length=12)),
                (
                    "priority",
                    models.SmallIntegerField(default=0, help_text="Higher is taken first."),
                ),
                ("claim", models.CharField(blank=True, max_length=160)),
                ("worker", models.CharField(blank=True, max_length=120)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("heartbeat_at", models.DateTimeField(blank=True, null=True)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("deaths", models.PositiveSmallIntegerField(default=0)),
                ("faults", models.PositiveSmallIntegerField(default=0)),
                (
                    "again_at",
                    models.DateTimeField(blank=True, help_text="Not tried before", null=True),
                ),
                (
                    "stage",
                    models.CharField(blank=True, help_text="Where it was rejected.", max_length=16),
                ),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("detail", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("board", models.CharField(max_length=60)),
                ("sizes", models.JSONField(default=dict)),
                ("version", models.PositiveSmallIntegerField()),
                ("code_digest", models.CharField(blank=True, max_length=64)),
                ("low_us", models.FloatField(blank=True, null=True)),
                ("time_us", models.FloatField(blank=True, null=True)),
                ("high_us", models.FloatField(blank=True, null=True)),
                ("sentence", models.TextField(blank=True)),
                ("unknown", models.JSONField(default=dict)),
                (
                    "build",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="modellings", to="codegen_app.build"
                    ),
                ),
                (
                    "report",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="+",
                        to="codegen_app.artifact",
                    ),
                ),
                (
                    "requested_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "use",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="+",
                        to="codegen_app.kerneluse",
                    ),
                ),
            ],
            options={
                "ordering": ["build", "board", "pk"],
                "abstract": False,
                "indexes": [
                    models.Index(fields=["state", "-priority", "id"], name="modelling_queue")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "queued",
                                    "running",
                                    "done",
                                    "rejected",
                                    "cancelled",
                                    "quarantined",
                                ],
                            )
                        ),
                        name="modelling_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("lease_until__isnull", False), ("state", "running")),
                            models.Q(
                                models.Q(("state", "running"), _negated=True),
                                ("lease_until__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="modelling_lease_while_running",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state__in", ["rejected", "quarantined"]), _negated=True),
                            models.Q(("reason", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="modelling_loss_has_reason",
                    ),
                    models.UniqueConstraint(
                        fields=("build", "board", "sizes", "version"), name="modelling_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "done"), _negated=True),
                            models.Q(
                                models.Q(("code_digest", ""), _negated=True),
                                ("report__isnull", False),
                                ("high_us__gte", models.F("time_us")),
                                ("low_us__gt", 0),
                                ("time_us__gte", models.F("low_us")),
                            ),
                            _connector="OR",
                        ),
                        name="modelling_done_has_report",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Packing",
            fields=[
                ("id", _id()),
                ("state", models.CharField(choices=_STATES, default="queued", max_length=12)),
                (
                    "priority",
                    models.SmallIntegerField(default=0, help_text="Higher is taken first."),
                ),
                ("claim", models.CharField(blank=True, max_length=160)),
                ("worker", models.CharField(blank=True, max_length=120)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("heartbeat_at", models.DateTimeField(blank=True, null=True)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("deaths", models.PositiveSmallIntegerField(default=0)),
                ("faults", models.PositiveSmallIntegerField(default=0)),
                (
                    "again_at",
                    models.DateTimeField(blank=True, help_text="Not tried before", null=True),
                ),
                (
                    "stage",
                    models.CharField(blank=True, help_text="Where it was rejected.", max_length=16),
                ),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("detail", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("times", models.CharField(blank=True, max_length=500)),
                ("key", models.CharField(max_length=64, unique=True)),
                ("targets", models.JSONField(default=list)),
                ("kernels", models.PositiveIntegerField()),
                ("packed", models.PositiveIntegerField(default=0)),
                (
                    "file",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="+",
                        to="codegen_app.artifact",
                    ),
                ),
                (
                    "graph",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="packings", to="codegen_app.graph"
                    ),
                ),
                (
                    "requested_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.SET_NULL,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "use",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="packings",
                        to="codegen_app.kerneluse",
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-pk"],
                "abstract": False,
                "indexes": [
                    models.Index(fields=["state", "-priority", "id"], name="packing_queue")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "queued",
                                    "running",
                                    "done",
                                    "rejected",
                                    "cancelled",
                                    "quarantined",
                                ],
                            )
                        ),
                        name="packing_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("lease_until__isnull", False), ("state", "running")),
                            models.Q(
                                models.Q(("state", "running"), _negated=True),
                                ("lease_until__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="packing_lease_while_running",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state__in", ["rejected", "quarantined"]), _negated=True),
                            models.Q(("reason", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="packing_loss_has_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "done"), _negated=True),
                            ("file__isnull", False),
                            _connector="OR",
                        ),
                        name="packing_done_has_file",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Problem",
            fields=[
                ("id", _id()),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("kind", models.CharField(help_text="gemm, reduction, pointwise …", max_length=16)),
                ("op", models.CharField(help_text="linear, addmm, softmax …", max_length=64)),
                (
                    "summary",
                    models.CharField(
                        help_text="One line: shapes, dtypes, epilogue", max_length=300
                    ),
                ),
                (
                    "symbols",
                    models.JSONField(
                        default=dict, help_text="Symbols used: {name: {hint, min, max}}"
                    ),
                ),
                ("text", models.TextField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("text", ""), _negated=True), name="problem_has_text"
                    )
                ]
            },
        ),
        migrations.AddField(
            model_name="benchmarkresult",
            name="problem",
            field=models.ForeignKey(
                on_delete=models.PROTECT, related_name="results", to="codegen_app.problem"
            ),
        ),
        migrations.CreateModel(
            name="ProblemWork",
            fields=[
                ("id", _id()),
                ("bindings", models.JSONField(default=dict)),
                ("read_bytes", models.PositiveBigIntegerField()),
                ("written_bytes", models.PositiveBigIntegerField()),
                ("matrix_flops", models.PositiveBigIntegerField()),
                ("matrix_dtype", models.CharField(blank=True, max_length=8)),
                ("vector_ops", models.PositiveBigIntegerField()),
                (
                    "problem",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="works", to="codegen_app.problem"
                    ),
                ),
            ],
            options={
                "ordering": ["problem", "pk"],
                "constraints": [
                    models.UniqueConstraint(fields=("problem", "bindings"), name="problemwork_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Remeasurement",
            fields=[
                ("id", _id()),
                ("state", models.CharField(choices=_STATES, default="queued", max_length=12)),
                (
                    "priority",
                    models.SmallIntegerField(default=0, help_text="Higher is taken first."),
                ),
                ("claim", models.CharField(blank=True, max_length=160)),
                ("worker", models.CharField(blank=True, max_length=120)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("heartbeat_at", models.DateTimeField(blank=True, null=True)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("deaths", models.PositiveSmallIntegerField(default=0)),
                ("faults", models.PositiveSmallIntegerField(default=0)),
                (
                    "again_at",
                    models.DateTimeField(blank=True, help_text="Not tried before", null=True),
                ),
                (
                    "stage",
                    models.CharField(blank=True, help_text="Where it was rejected.", max_length=16),
                ),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("detail", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "boundary",
                    models.DateTimeField(help_text="Points from here on are of the later level"),
                ),
                ("samples", models.PositiveIntegerField(default=0)),
                ("samples_due", models.PositiveIntegerField(default=0)),
                (
                    "alert",
                    models.ForeignKey(
                        on_delete=models.CASCADE,
                        related_name="remeasurements",
                        to="codegen_app.alert",
                    ),
                ),
                (
                    "requested_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={"ordering": ["-pk"], "abstract": False},
        ),
        migrations.CreateModel(
            name="RemeasuredPoint",
            fields=[
                ("id", _id()),
                ("reason", models.CharField(blank=True, max_length=500)),
                (
                    "datum",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="+",
                        to="codegen_app.datum",
                    ),
                ),
                (
                    "original",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="+", to="codegen_app.datum"
                    ),
                ),
                (
                    "remeasurement",
                    models.ForeignKey(
                        on_delete=models.CASCADE,
                        related_name="points",
                        to="codegen_app.remeasurement",
                    ),
                ),
            ],
            options={
                "ordering": ["remeasurement", "original__at", "original"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("remeasurement", "original"), name="remeasuredpoint_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RetentionPolicy",
            fields=[
                ("id", _id()),
                ("name", models.CharField(max_length=100, unique=True)),
                (
                    "what",
                    models.CharField(
                        choices=[
                            ("samples", "raw samples of points"),
                            ("deliveries", "deliveries of notifications"),
                        ],
                        default="samples",
                        max_length=10,
                    ),
                ),
                (
                    "source",
                    models.CharField(
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
                (
                    "days",
                    models.PositiveIntegerField(
                        validators=[MinValueValidator(1), MaxValueValidator(36500)]
                    ),
                ),
                ("active", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("begun_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("last_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("last_rows", models.PositiveBigIntegerField(default=0, editable=False)),
                ("total_rows", models.PositiveBigIntegerField(default=0, editable=False)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "retention policies",
                "ordering": ["name"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("days__gte", 1), ("days__lte", 36500)),
                        name="retention_keeps_days",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("what", "samples"),
                            models.Q(("source", ""), ("what", "deliveries")),
                            _connector="OR",
                        ),
                        name="retention_of_what_there_is",
                        violation_error_message="deliveries have no source: leave it empty",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RetuneSchedule",
            fields=[
                ("id", _id()),
                (
                    "occasion",
                    models.CharField(
                        choices=[
                            ("nightly", "every night"),
                            ("import", "after an import"),
                            ("toolchain", "when a toolchain changes"),
                        ],
                        max_length=12,
                    ),
                ),
                ("target", models.CharField(default="cpu", max_length=24)),
                (
                    "device",
                    models.CharField(default="cpu", help_text="cpu, rocm:0 …", max_length=32),
                ),
                (
                    "budget_s",
                    models.FloatField(
                        blank=True, default=600, help_text="Seconds a run", null=True
                    ),
                ),
                ("max_compiles", models.PositiveIntegerField(blank=True, null=True)),
                ("max_measurements", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "strategy",
                    models.CharField(
                        default="guided", help_text="In which order a search tries", max_length=24
                    ),
                ),
                (
                    "priority",
                    models.SmallIntegerField(default=-10, help_text="Below what people ask for"),
                ),
                (
                    "hour",
                    models.PositiveSmallIntegerField(
                        default=2, help_text="0 to 23, UTC; for every night"
                    ),
                ),
                ("enabled", models.BooleanField(default=True)),
                ("toolchains", models.JSONField(default=list, editable=False)),
                ("last_at", models.DateTimeField(editable=False, null=True)),
                (
                    "graph",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="schedules",
                        to="codegen_app.graph",
                    ),
                ),
                (
                    "made_by",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=models.SET_NULL,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "permissions": [("schedule", "Can schedule tuning runs")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("occasion__in", ["nightly", "import", "toolchain"])),
                        name="retuneschedule_occasion_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("hour__lte", 23)), name="retuneschedule_hour"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("budget_s__gt", 0),
                            models.Q(("budget_s__isnull", True), ("max_compiles__gt", 0)),
                            models.Q(("budget_s__isnull", True), ("max_measurements__gt", 0)),
                            _connector="OR",
                        ),
                        name="retuneschedule_has_budget",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Revision",
            fields=[
                ("id", _id()),
                ("repository", models.CharField(blank=True, max_length=300)),
                ("name", models.CharField(help_text="A commit, a version …", max_length=100)),
                ("branch", models.CharField(blank=True, max_length=200)),
                ("at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("repository", "name", "branch"), name="revision_once_a_branch"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("name", ""), _negated=True), name="revision_has_name"
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="datum",
            name="revision",
            field=models.ForeignKey(
                db_index=False,
                on_delete=models.PROTECT,
                related_name="data",
                to="codegen_app.revision",
            ),
        ),
        migrations.AddField(
            model_name="alert",
            name="revision",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=models.PROTECT,
                related_name="alerts",
                to="codegen_app.revision",
            ),
        ),
        migrations.CreateModel(
            name="Selection",
            fields=[
                ("id", _id()),
                ("target", models.CharField(max_length=24)),
                ("device_name", models.CharField(max_length=200)),
                ("toolchain", models.CharField(blank=True, max_length=240)),
                ("bindings", models.JSONField(default=dict)),
                ("reason", models.CharField(max_length=300)),
                ("since", models.DateTimeField()),
                ("until", models.DateTimeField(blank=True, null=True)),
                (
                    "chosen_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.SET_NULL,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "kernel",
                    models.ForeignKey(
                        on_delete=models.PROTECT,
                        related_name="selections",
                        to="codegen_app.generatedkernel",
                    ),
                ),
                (
                    "problem",
                    models.ForeignKey(
                        on_delete=models.PROTECT,
                        related_name="selections",
                        to="codegen_app.problem",
                    ),
                ),
                (
                    "result",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="selections",
                        to="codegen_app.benchmarkresult",
                    ),
                ),
            ],
            options={
                "ordering": ["-since", "-pk"],
                "permissions": [("select", "Can change which kernels serve")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("until__isnull", True)),
                        fields=("problem", "target", "device_name", "toolchain", "bindings"),
                        name="selection_one_serves",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("until__isnull", True),
                            ("until__gte", models.F("since")),
                            _connector="OR",
                        ),
                        name="selection_ends_after_it_began",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Series",
            fields=[
                ("id", _id()),
                ("digest", models.CharField(max_length=64)),
                ("problem", models.CharField(max_length=500)),
                ("sizes", models.JSONField(default=dict)),
                ("target", models.CharField(blank=True, max_length=40)),
                ("device_name", models.CharField(max_length=200)),
                ("toolchain", models.CharField(blank=True, max_length=40)),
                ("metric", models.CharField(max_length=80)),
                ("unit", models.CharField(blank=True, max_length=40)),
                ("better", models.CharField(default="lower", max_length=6)),
                ("points", models.PositiveIntegerField(default=0)),
                ("not_positive", models.PositiveIntegerField(db_default=0, default=0)),
                ("withdrawn", models.PositiveIntegerField(db_default=0, default=0)),
                ("first_at", models.DateTimeField(blank=True, null=True)),
                ("last_at", models.DateTimeField(blank=True, null=True)),
                ("unchecked_from", models.DateTimeField(blank=True, null=True)),
                ("stale_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "own_problem",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="series",
                        to="codegen_app.problem",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "series",
                "ordering": ["problem", "metric", "pk"],
                "indexes": [
                    models.Index(fields=["-last_at", "-id"], name="series_by_latest"),
                    models.Index(
                        condition=models.Q(("unchecked_from__isnull", False)),
                        fields=["unchecked_from", "id"],
                        name="series_unchecked",
                    ),
                    models.Index(
                        condition=models.Q(("stale_at__isnull", False)),
                        fields=["stale_at", "id"],
                        name="series_stale",
                    ),
                    models.Index(
                        condition=models.Q(("own_problem__isnull", False)),
                        fields=["own_problem"],
                        name="series_by_own_problem",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("digest",), name="series_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("problem", ""), _negated=True),
                            models.Q(("metric", ""), _negated=True),
                        ),
                        name="series_is_of_something",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("better__in", ("lower", "higher"))),
                        name="series_better_known",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="remeasurement",
            name="series",
            field=models.ForeignKey(
                on_delete=models.PROTECT, related_name="remeasurements", to="codegen_app.series"
            ),
        ),
        migrations.CreateModel(
            name="MeasurementRequest",
            fields=[
                ("id", _id()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("answered_at", models.DateTimeField(blank=True, null=True)),
                ("withdrawn_at", models.DateTimeField(blank=True, null=True)),
                (
                    "alert",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="requests", to="codegen_app.alert"
                    ),
                ),
                (
                    "requested_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "revision",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="requests", to="codegen_app.revision"
                    ),
                ),
                (
                    "series",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="requests", to="codegen_app.series"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(
                            ("answered_at__isnull", True), ("withdrawn_at__isnull", True)
                        ),
                        fields=("series", "revision"),
                        name="request_once_open",
                    )
                ],
            },
        ),
        migrations.AddField(
            model_name="datum",
            name="series",
            field=models.ForeignKey(
                db_index=False,
                on_delete=models.PROTECT,
                related_name="data",
                to="codegen_app.series",
            ),
        ),
        migrations.CreateModel(
            name="Change",
            fields=[
                ("id", _id()),
                ("at", models.DateTimeField()),
                ("shown_at", models.DateTimeField(blank=True, null=True)),
                ("before", models.FloatField()),
                ("after", models.FloatField()),
                ("low", models.FloatField(blank=True, null=True)),
                ("high", models.FloatField(blank=True, null=True)),
                ("n_before", models.PositiveIntegerField()),
                ("n_after", models.PositiveIntegerField()),
                ("errors", models.FloatField()),
                ("worse", models.BooleanField()),
                ("cause", models.CharField(blank=True, max_length=20)),
                ("rule", models.CharField(blank=True, max_length=100)),
                ("explanation", models.JSONField(blank=True, default=dict)),
                ("found_at", models.DateTimeField(auto_now_add=True)),
                ("explained_at", models.DateTimeField(blank=True, null=True)),
                ("withdrawn_at", models.DateTimeField(blank=True, null=True)),
                ("raised_at", models.DateTimeField(blank=True, null=True)),
                (
                    "alert",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="changes",
                        to="codegen_app.alert",
                    ),
                ),
                (
                    "datum",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="changes", to="codegen_app.datum"
                    ),
                ),
                (
                    "previous",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="+",
                        to="codegen_app.revision",
                    ),
                ),
                (
                    "revision",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="changes", to="codegen_app.revision"
                    ),
                ),
                (
                    "series",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="changes", to="codegen_app.series"
                    ),
                ),
            ],
            options={
                "ordering": ["series", "at", "pk"],
                "indexes": [
                    models.Index(fields=["series", "at"], name="change_history"),
                    models.Index(
                        condition=models.Q(
                            ("explained_at__isnull", True), ("withdrawn_at__isnull", True)
                        ),
                        fields=["id"],
                        name="change_unexplained",
                    ),
                    models.Index(
                        condition=models.Q(("raised_at__isnull", True)),
                        fields=["revision", "id"],
                        name="change_unraised",
                    ),
                    models.Index(
                        models.F("alert"),
                        models.OrderBy(
                            Abs(Ln(models.F("after") / models.F("before"))), descending=True
                        ),
                        models.F("id"),
                        condition=models.Q(
                            ("alert__isnull", False), ("withdrawn_at__isnull", True)
                        ),
                        name="change_worst",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("withdrawn_at__isnull", True)),
                        fields=("datum",),
                        name="change_once_a_point",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("after__gt", 0), ("before__gt", 0)),
                        name="change_levels_above_zero",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Baseline",
            fields=[
                ("id", _id()),
                ("at", models.DateTimeField()),
                ("reason", models.CharField(max_length=500)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("removed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "series",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="baselines", to="codegen_app.series"
                    ),
                ),
            ],
            options={
                "ordering": ["series", "at"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("removed_at__isnull", True)),
                        fields=("series", "at"),
                        name="baseline_once_a_moment",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reason", ""), _negated=True),
                        name="baseline_has_reason",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="alert",
            name="series",
            field=models.ForeignKey(
                blank=True,
                help_text="Of missing data alone",
                null=True,
                on_delete=models.PROTECT,
                related_name="alerts",
                to="codegen_app.series",
            ),
        ),
        migrations.CreateModel(
            name="SeriesRule",
            fields=[
                ("id", _id()),
                ("least_effect", models.FloatField(blank=True, null=True)),
                ("muted", models.BooleanField(default=False)),
                ("stale_after", models.DurationField(blank=True, null=True)),
                ("reason", models.CharField(max_length=500)),
                ("changed_at", models.DateTimeField(auto_now=True)),
                (
                    "changed_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "series",
                    models.OneToOneField(
                        on_delete=models.CASCADE, related_name="rule", to="codegen_app.series"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("least_effect__isnull", True),
                            models.Q(("least_effect__gte", 0.001), ("least_effect__lte", 1)),
                            _connector="OR",
                        ),
                        name="seriesrule_effect_is_a_part",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reason", ""), _negated=True),
                        name="seriesrule_has_reason",
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="TemplateNode",
            fields=[
                ("id", _id()),
                ("position", models.PositiveIntegerField()),
                ("name", models.CharField(max_length=200)),
                ("kind", models.CharField(max_length=16)),
                ("op", models.CharField(max_length=64)),
                ("group", models.JSONField(default=list)),
                ("reads", models.JSONField(default=list)),
                ("writes", models.JSONField(default=list)),
                ("frees", models.JSONField(default=list)),
                ("rejected", models.JSONField(default=list)),
                ("legal", models.JSONField(default=dict)),
                ("offered", models.PositiveIntegerField(default=0)),
                ("extern_reason", models.TextField(blank=True)),
                (
                    "graph",
                    models.ForeignKey(
                        on_delete=models.CASCADE,
                        related_name="template_nodes",
                        to="codegen_app.graph",
                    ),
                ),
                (
                    "graph_nodes",
                    models.ManyToManyField(
                        related_name="template_nodes", to="codegen_app.graphnode"
                    ),
                ),
                (
                    "problem",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="template_nodes",
                        to="codegen_app.problem",
                    ),
                ),
            ],
            options={
                "ordering": ["graph", "position"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("graph", "name"), name="templatenode_name_once"
                    ),
                    models.UniqueConstraint(
                        fields=("graph", "position"), name="templatenode_position_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("problem__isnull", False),
                            models.Q(("extern_reason", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="templatenode_problem_or_reason",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="kerneluse",
            name="template_node",
            field=models.ForeignKey(
                on_delete=models.CASCADE, related_name="uses", to="codegen_app.templatenode"
            ),
        ),
        migrations.AddField(
            model_name="generatedkernel",
            name="template_nodes",
            field=models.ManyToManyField(
                related_name="kernels",
                through="codegen_app.KernelUse",
                to="codegen_app.templatenode",
            ),
        ),
        migrations.CreateModel(
            name="TorchComparison",
            fields=[
                ("id", _id()),
                ("state", models.CharField(choices=_STATES, default="queued", max_length=12)),
                (
                    "priority",
                    models.SmallIntegerField(default=0, help_text="Higher is taken first."),
                ),
                ("claim", models.CharField(blank=True, max_length=160)),
                ("worker", models.CharField(blank=True, max_length=120)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("heartbeat_at", models.DateTimeField(blank=True, null=True)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("deaths", models.PositiveSmallIntegerField(default=0)),
                ("faults", models.PositiveSmallIntegerField(default=0)),
                (
                    "again_at",
                    models.DateTimeField(blank=True, help_text="Not tried before", null=True),
                ),
                (
                    "stage",
                    models.CharField(blank=True, help_text="Where it was rejected.", max_length=16),
                ),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("detail", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("oracle", models.CharField(blank=True, max_length=60)),
                ("bindings", models.JSONField(default=dict)),
                ("findings", models.JSONField(default=list)),
                (
                    "graph",
                    models.OneToOneField(
                        on_delete=models.CASCADE,
                        related_name="torch_comparison",
                        to="codegen_app.graph",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "abstract": False,
                "indexes": [
                    models.Index(fields=["state", "-priority", "id"], name="torch_comparison_queue")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "queued",
                                    "running",
                                    "done",
                                    "rejected",
                                    "cancelled",
                                    "quarantined",
                                ],
                            )
                        ),
                        name="torchcomparison_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("lease_until__isnull", False), ("state", "running")),
                            models.Q(
                                models.Q(("state", "running"), _negated=True),
                                ("lease_until__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="torchcomparison_lease_while_running",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state__in", ["rejected", "quarantined"]), _negated=True),
                            models.Q(("reason", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="torchcomparison_loss_has_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "done"), _negated=True),
                            models.Q(("oracle", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="torch_comparison_done_has_oracle",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="TuningRun",
            fields=[
                ("id", _id()),
                (
                    "device",
                    models.CharField(help_text="cpu, rocm:0, model:MI300X …", max_length=32),
                ),
                (
                    "target",
                    models.CharField(
                        help_text="What the candidates are compiled for", max_length=24
                    ),
                ),
                ("bindings", models.JSONField(default=dict)),
                ("note", models.TextField(blank=True)),
                (
                    "kinds",
                    models.JSONField(default=list, help_text="Of nodes; none stands for all"),
                ),
                (
                    "candidate_limit",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="At most so many candidates a problem, the default first",
                        null=True,
                    ),
                ),
                ("budget_s", models.FloatField(blank=True, null=True)),
                ("max_compiles", models.PositiveIntegerField(blank=True, null=True)),
                ("max_measurements", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "strategy",
                    models.CharField(
                        default="guided", help_text="In which order a search tries", max_length=24
                    ),
                ),
                (
                    "priority",
                    models.SmallIntegerField(default=0, help_text="Higher is taken first."),
                ),
                ("why", models.CharField(blank=True, max_length=500)),
                ("state", models.CharField(choices=_STATES, default="queued", max_length=12)),
                (
                    "reason",
                    models.CharField(
                        blank=True,
                        help_text="What was not measured and why, once it is over",
                        max_length=500,
                    ),
                ),
                ("cancelled_at", models.DateTimeField(blank=True, null=True)),
                (
                    "planned_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="Since when its tasks and their candidates are all there",
                        null=True,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "graph",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="tuning_runs", to="codegen_app.graph"
                    ),
                ),
                (
                    "requested_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.SET_NULL,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "template_node",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="tuning_runs",
                        to="codegen_app.templatenode",
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-pk"],
                "permissions": [("retune", "Can start and cancel tuning runs")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "queued",
                                    "running",
                                    "done",
                                    "rejected",
                                    "cancelled",
                                    "quarantined",
                                ],
                            )
                        ),
                        name="tuningrun_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("finished_at__isnull", True), ("state__in", ("queued", "running"))
                            ),
                            models.Q(
                                models.Q(("state__in", ("queued", "running")), _negated=True),
                                ("finished_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="tuningrun_finished_when_closed",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("budget_s__isnull", True), ("budget_s__gt", 0), _connector="OR"
                            ),
                            models.Q(
                                ("max_compiles__isnull", True),
                                ("max_compiles__gt", 0),
                                _connector="OR",
                            ),
                            models.Q(
                                ("max_measurements__isnull", True),
                                ("max_measurements__gt", 0),
                                _connector="OR",
                            ),
                        ),
                        name="tuningrun_budget_is_positive",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ResultImport",
            fields=[
                ("id", _id()),
                ("digest", models.CharField(max_length=64, unique=True)),
                (
                    "version",
                    models.CharField(
                        blank=True, help_text="Of the Kiln that measured", max_length=40
                    ),
                ),
                ("commit", models.CharField(blank=True, max_length=64)),
                (
                    "host",
                    models.CharField(
                        blank=True, help_text="The kind of host, no name", max_length=200
                    ),
                ),
                ("device_name", models.CharField(blank=True, max_length=200)),
                ("driver", models.CharField(blank=True, max_length=200)),
                ("measured_at", models.DateTimeField()),
                ("seed", models.BigIntegerField(blank=True, null=True)),
                ("imported_at", models.DateTimeField(auto_now_add=True)),
                (
                    "imported_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.SET_NULL,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "run",
                    models.OneToOneField(
                        on_delete=models.CASCADE,
                        related_name="imported",
                        to="codegen_app.tuningrun",
                    ),
                ),
            ],
            options={"ordering": ["-imported_at", "-pk"]},
        ),
        migrations.AddField(
            model_name="datum",
            name="run",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=models.SET_NULL,
                related_name="data",
                to="codegen_app.tuningrun",
            ),
        ),
        migrations.CreateModel(
            name="AlertRun",
            fields=[
                ("id", _id()),
                (
                    "alert",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="retuned", to="codegen_app.alert"
                    ),
                ),
                (
                    "series",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="+", to="codegen_app.series"
                    ),
                ),
                (
                    "run",
                    models.OneToOneField(
                        on_delete=models.CASCADE,
                        related_name="of_alert",
                        to="codegen_app.tuningrun",
                    ),
                ),
            ],
            options={"ordering": ["pk"]},
        ),
        migrations.CreateModel(
            name="TuningTask",
            fields=[
                ("id", _id()),
                ("state", models.CharField(choices=_STATES, default="queued", max_length=12)),
                (
                    "priority",
                    models.SmallIntegerField(default=0, help_text="Higher is taken first."),
                ),
                ("claim", models.CharField(blank=True, max_length=160)),
                ("worker", models.CharField(blank=True, max_length=120)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("heartbeat_at", models.DateTimeField(blank=True, null=True)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("deaths", models.PositiveSmallIntegerField(default=0)),
                ("faults", models.PositiveSmallIntegerField(default=0)),
                (
                    "again_at",
                    models.DateTimeField(blank=True, help_text="Not tried before", null=True),
                ),
                (
                    "stage",
                    models.CharField(blank=True, help_text="Where it was rejected.", max_length=16),
                ),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("detail", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("title", models.CharField(blank=True, max_length=300)),
                ("operands", models.JSONField(default=list)),
                ("shape", models.JSONField(default=dict)),
                ("spent_s", models.FloatField(default=0)),
                (
                    "begins_with",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="+",
                        to="codegen_app.tuningtask",
                    ),
                ),
                (
                    "problem",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="tasks", to="codegen_app.problem"
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="tasks", to="codegen_app.tuningrun"
                    ),
                ),
                (
                    "template_node",
                    models.ForeignKey(
                        on_delete=models.CASCADE,
                        related_name="tasks",
                        to="codegen_app.templatenode",
                    ),
                ),
            ],
            options={
                "ordering": ["run", "pk"],
                "abstract": False,
                "indexes": [
                    models.Index(fields=["state", "-priority", "id"], name="tuningtask_queue")
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "queued",
                                    "running",
                                    "done",
                                    "rejected",
                                    "cancelled",
                                    "quarantined",
                                ],
                            )
                        ),
                        name="tuningtask_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("lease_until__isnull", False), ("state", "running")),
                            models.Q(
                                models.Q(("state", "running"), _negated=True),
                                ("lease_until__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="tuningtask_lease_while_running",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state__in", ["rejected", "quarantined"]), _negated=True),
                            models.Q(("reason", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="tuningtask_loss_has_reason",
                    ),
                    models.UniqueConstraint(
                        fields=("run", "problem"), name="tuningtask_problem_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Candidate",
            fields=[
                ("id", _id()),
                (
                    "position",
                    models.PositiveIntegerField(help_text="The default first, then as offered"),
                ),
                ("modelled", models.JSONField(blank=True, null=True)),
                ("config", models.JSONField(default=dict)),
                ("state", models.CharField(choices=_STATES, default="queued", max_length=12)),
                ("stage", models.CharField(blank=True, max_length=16)),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("detail", models.TextField(blank=True)),
                ("chosen", models.BooleanField(default=False)),
                (
                    "tied",
                    models.BooleanField(
                        default=False, help_text="Within the noise of the fastest, as others are"
                    ),
                ),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "build",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="candidates",
                        to="codegen_app.build",
                    ),
                ),
                (
                    "result",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="candidate",
                        to="codegen_app.benchmarkresult",
                    ),
                ),
                (
                    "kernel",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="candidates",
                        to="codegen_app.generatedkernel",
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=models.CASCADE,
                        related_name="candidates",
                        to="codegen_app.tuningtask",
                    ),
                ),
            ],
            options={
                "ordering": ["task", "position"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("task", "position"), name="candidate_position_once"
                    ),
                    models.UniqueConstraint(
                        fields=("task", "kernel"), name="candidate_kernel_once"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("chosen", True)),
                        fields=("task",),
                        name="candidate_one_chosen",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "state__in",
                                [
                                    "queued",
                                    "running",
                                    "done",
                                    "rejected",
                                    "cancelled",
                                    "quarantined",
                                ],
                            )
                        ),
                        name="candidate_state_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state__in", ["rejected", "quarantined"]), _negated=True),
                            models.Q(("reason", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="candidate_loss_has_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("result__isnull", False), ("state", "done")),
                            models.Q(("modelled__isnull", False), ("state", "done")),
                            models.Q(
                                models.Q(("state", "done"), _negated=True), ("result__isnull", True)
                            ),
                            _connector="OR",
                        ),
                        name="candidate_done_has_result",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("build__isnull", False), ("kernel__isnull", False)),
                            models.Q(
                                ("build__isnull", True), ("state__in", ["rejected", "cancelled"])
                            ),
                            _connector="OR",
                        ),
                        name="candidate_without_build_is_over",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="benchmarkresult",
            name="task",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=models.SET_NULL,
                related_name="results",
                to="codegen_app.tuningtask",
            ),
        ),
        migrations.CreateModel(
            name="Withdrawal",
            fields=[
                ("id", _id()),
                ("reason", models.CharField(max_length=500)),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("restored_at", models.DateTimeField(blank=True, null=True)),
                (
                    "by",
                    models.ForeignKey(
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "datum",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="withdrawals", to="codegen_app.datum"
                    ),
                ),
                (
                    "restored_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "series",
                    models.ForeignKey(
                        on_delete=models.CASCADE,
                        related_name="withdrawals",
                        to="codegen_app.series",
                    ),
                ),
            ],
            options={
                "ordering": ["series", "pk"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("restored_at__isnull", True)),
                        fields=("datum",),
                        name="withdrawal_once_a_point",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reason", ""), _negated=True),
                        name="withdrawal_has_reason",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Worker",
            fields=[
                ("id", _id()),
                ("name", models.CharField(max_length=120, unique=True)),
                ("host", models.CharField(max_length=120)),
                ("pid", models.PositiveIntegerField()),
                ("queues", models.JSONField(default=list)),
                ("devices", models.JSONField(default=list)),
                ("absent", models.JSONField(default=list)),
                ("toolchains", models.JSONField(default=list)),
                ("fence", models.JSONField(default=list)),
                ("started_at", models.DateTimeField()),
                ("seen_at", models.DateTimeField()),
                ("stopped_at", models.DateTimeField(blank=True, null=True)),
                (
                    "control",
                    models.CharField(
                        choices=[("go", "takes work"), ("pause", "paused"), ("drain", "draining")],
                        default="go",
                        max_length=8,
                    ),
                ),
                (
                    "pinned_to",
                    models.CharField(
                        blank=True, help_text="Of its queues, if one alone", max_length=40
                    ),
                ),
                ("control_at", models.DateTimeField(blank=True, null=True)),
                ("control_why", models.CharField(blank=True, max_length=500)),
                (
                    "remote",
                    models.BooleanField(
                        default=False, help_text="Without the database, over HTTPS"
                    ),
                ),
                ("session", models.CharField(blank=True, max_length=64)),
                ("versions", models.JSONField(default=dict)),
                (
                    "control_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "token",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="workers",
                        to="codegen_app.apitoken",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "permissions": [("steer_workers", "Can pause, drain and pin workers")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("control__in", ["go", "pause", "drain"])),
                        name="worker_control_known",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RemoteLease",
            fields=[
                ("id", _id()),
                ("key", models.CharField(max_length=32, unique=True)),
                ("claim", models.CharField(max_length=160)),
                ("device", models.CharField(blank=True, max_length=32)),
                ("results", models.PositiveIntegerField(default=0)),
                ("spent_s", models.FloatField(default=0)),
                ("offered", models.JSONField(blank=True, default=dict, null=True)),
                ("asked", models.JSONField(blank=True, default=list)),
                ("begun_at", models.DateTimeField(auto_now_add=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "end",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("finished", "its outcome is recorded"),
                            ("given back", "the worker was stopped"),
                            ("failed", "the worker could not do it"),
                            ("expired", "the work was cancelled, or given to another"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "remeasurement",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="leases",
                        to="codegen_app.remeasurement",
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="leases",
                        to="codegen_app.tuningtask",
                    ),
                ),
                (
                    "worker",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="leases", to="codegen_app.worker"
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at__isnull", True)),
                        fields=("worker",),
                        name="remotelease_one_a_worker",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("end", ""), ("ended_at__isnull", True)),
                            models.Q(
                                ("end__in", ["finished", "given back", "failed", "expired"]),
                                ("ended_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="remotelease_end_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("remeasurement__isnull", True), ("task__isnull", False)),
                            models.Q(("remeasurement__isnull", False), ("task__isnull", True)),
                            _connector="OR",
                        ),
                        name="remotelease_of_one",
                    ),
                ],
            },
        ),
        migrations.AddIndex(
            model_name="remeasurement",
            index=models.Index(fields=["state", "-priority", "id"], name="remeasurement_queue"),
        ),
        migrations.AddConstraint(
            model_name="remeasurement",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "state__in",
                        ["queued", "running", "done", "rejected", "cancelled", "quarantined"],
                    )
                ),
                name="remeasurement_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="remeasurement",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("lease_until__isnull", False), ("state", "running")),
                    models.Q(
                        models.Q(("state", "running"), _negated=True), ("lease_until__isnull", True)
                    ),
                    _connector="OR",
                ),
                name="remeasurement_lease_while_running",
            ),
        ),
        migrations.AddConstraint(
            model_name="remeasurement",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state__in", ["rejected", "quarantined"]), _negated=True),
                    models.Q(("reason", ""), _negated=True),
                    _connector="OR",
                ),
                name="remeasurement_loss_has_reason",
            ),
        ),
        migrations.AddConstraint(
            model_name="remeasurement",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state__in", ["queued", "running"])),
                fields=("alert", "series"),
                name="remeasurement_once_open",
            ),
        ),
        migrations.AddIndex(
            model_name="alert",
            index=models.Index(fields=["state", "-created_at", "-id"], name="alert_by_state"),
        ),
        migrations.AddConstraint(
            model_name="alert",
            constraint=models.UniqueConstraint(
                condition=models.Q(("revision__isnull", False)),
                fields=("kind", "revision"),
                name="alert_once_a_revision",
            ),
        ),
        migrations.AddConstraint(
            model_name="alert",
            constraint=models.UniqueConstraint(
                condition=models.Q(
                    ("kind", "missing"), ("state__in", ("new", "acknowledged", "investigating"))
                ),
                fields=("series",),
                name="alert_missing_once_open",
            ),
        ),
        migrations.AddConstraint(
            model_name="alert",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("kind", "missing"), ("series__isnull", False)),
                    models.Q(
                        models.Q(("kind", "missing"), _negated=True), ("revision__isnull", False)
                    ),
                    _connector="OR",
                ),
                name="alert_of_revision_or_series",
            ),
        ),
        migrations.AddConstraint(
            model_name="alert",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "state__in",
                        ["new", "acknowledged", "investigating", "expected", "fixed", "invalid"],
                    )
                ),
                name="alert_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="kerneluse",
            constraint=models.UniqueConstraint(
                fields=("kernel", "template_node"), name="kerneluse_kernel_once_a_node"
            ),
        ),
        migrations.AddConstraint(
            model_name="kerneluse",
            constraint=models.UniqueConstraint(
                condition=models.Q(("is_default", True)),
                fields=("template_node",),
                name="kerneluse_one_default_a_node",
            ),
        ),
        migrations.AddIndex(
            model_name="generatedkernel", index=GinIndex(fields=["config"], name="kernel_config")
        ),
        migrations.AddConstraint(
            model_name="generatedkernel",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("source", ""), _negated=True),
                    models.Q(("source_file", ""), _negated=True),
                ),
                name="generatedkernel_has_source",
            ),
        ),
        migrations.AddIndex(
            model_name="datum",
            index=models.Index(
                fields=["series", "at", "id"],
                include=("value", "low", "high", "n", "revision", "conditions", "source"),
                name="datum_history",
            ),
        ),
        migrations.AddIndex(
            model_name="datum",
            index=models.Index(fields=["revision", "series"], name="datum_by_revision"),
        ),
        migrations.AddIndex(
            model_name="datum",
            index=models.Index(
                condition=models.Q(("samples__isnull", False)),
                fields=["source", "measured_at"],
                name="datum_samples_by_age",
            ),
        ),
        migrations.AddIndex(
            model_name="datum",
            index=models.Index(
                condition=models.Q(("batch__isnull", False)),
                fields=["batch"],
                name="datum_by_batch",
            ),
        ),
        migrations.AddIndex(
            model_name="datum",
            index=models.Index(
                condition=models.Q(("kernel__isnull", False)),
                fields=["kernel"],
                name="datum_by_kernel",
            ),
        ),
        migrations.AddIndex(
            model_name="datum",
            index=models.Index(
                condition=models.Q(("build__isnull", False)),
                fields=["build"],
                name="datum_by_build",
            ),
        ),
        migrations.AddIndex(
            model_name="datum",
            index=models.Index(
                condition=models.Q(("run__isnull", False)), fields=["run"], name="datum_by_run"
            ),
        ),
        migrations.AddConstraint(
            model_name="datum",
            constraint=models.UniqueConstraint(
                condition=models.Q(("result__isnull", False)),
                fields=("result", "series"),
                name="datum_result_once",
            ),
        ),
        migrations.AddConstraint(
            model_name="datum",
            constraint=models.CheckConstraint(
                condition=models.Q(("n__gte", 1)), name="datum_n_is_positive"
            ),
        ),
        migrations.AddConstraint(
            model_name="datum",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("high__isnull", True), ("low__isnull", True)),
                    models.Q(("low__lte", models.F("value")), ("high__gte", models.F("value"))),
                    _connector="OR",
                ),
                name="datum_interval_holds_value",
            ),
        ),
        migrations.AddConstraint(
            model_name="datum",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("source__in", ["tuning", "again", "import", "api", "generated"])
                ),
                name="datum_source_known",
            ),
        ),
        migrations.AddIndex(
            model_name="benchmarkresult",
            index=models.Index(fields=["problem", "median_ns"], name="result_by_problem"),
        ),
        migrations.AddConstraint(
            model_name="benchmarkresult",
            constraint=models.UniqueConstraint(
                fields=("task", "kernel"), name="benchmarkresult_once_a_task"
            ),
        ),
        migrations.AddConstraint(
            model_name="benchmarkresult",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("low_ns__lte", models.F("median_ns")), ("high_ns__gte", models.F("median_ns"))
                ),
                name="benchmarkresult_interval_holds_median",
            ),
        ),
        migrations.AddConstraint(
            model_name="benchmarkresult",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("low_ns__gt", 0), ("batch__gte", 1), ("samples_ns__len__gte", 1)
                ),
                name="benchmarkresult_times_are_positive",
            ),
        ),
        migrations.AddConstraint(
            model_name="benchmarkresult",
            constraint=models.CheckConstraint(
                condition=models.Q(("check_ratio__lte", 1)), name="benchmarkresult_check_passed"
            ),
        ),
        migrations.RunSQL(_GUARD, _UNGUARD),
        migrations.RunSQL(_AUTOVACUUM, migrations.RunSQL.noop),
        migrations.RunPython(_create_groups, migrations.RunPython.noop),
    ]
