"""Histories: a figure of a problem over time, from any source."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.urls import reverse

from codegen_app.graphs.models.template_node import Problem
from codegen_app.kernels.models.build import Build
from codegen_app.kernels.models.generated_kernel import GeneratedKernel
from codegen_app.tracking.models.batch import Batch
from codegen_app.tuning.models.benchmark_result import BenchmarkResult
from codegen_app.tuning.models.tuning_run import TuningRun
from scheduler.track.generated_label import LABEL

LOWER, HIGHER = "lower", "higher"


class Series(models.Model):
    """One metric of one problem at one binding of its sizes, on one device model for one target,
    with one kind of toolchain (its name without the version).

    ``digest`` covers all these (``scheduler.results.points.model.SeriesKey``): a new kernel, driver
    or compiler version continues the series. ``own_problem`` is the row for figures of Kiln's own
    problems, whose digest is then part of the identity; else ``problem`` is a name that a client
    sent. ``better`` says which direction is an improvement.

    ``points``, ``first_at`` and ``last_at`` are stored besides the points, for lists that must not
    count them. Of the points, ``branch_points`` are of other branches than the trunk; of the
    trunk's, ``withdrawn`` were withdrawn and ``not_positive`` others are at or below 0: none of
    these are compared, the last because changes are ratios. ``first_at`` and ``last_at`` span the
    trunk's points, or those of branches if there are no others. ``unchecked_from`` is the earliest
    place in history at which a point of the trunk was added or removed that no detector has
    checked: null if there is none. ``stale_at`` is when its data count as missing unless points
    come: null if their rhythm is unknown.

    Up to ``rolled_up_to`` a policy replaced points by the median of each day (``DaySummary``), and
    deleted ``rolled_up`` of them; nothing is detected up to there any more.

    The last ``suspected_n`` values (0: none) lie off the level before them by ``suspected_ratio``,
    the first at ``suspected_from`` in the history, too few to be a change;
    ``suspicion_handled``: whether to measure them again has been decided.

    ``repository`` and ``path`` are those of its latest point. The rules by patterns that apply to
    it, ``pattern_rule`` for its thresholds and ``owner_rule`` for its owner, are stored, so that no
    point is matched with patterns; ``needs_rules``: they are to be found, or found again.
    """

    id = models.AutoField(primary_key=True)  # four bytes in each point
    digest = models.CharField(max_length=64)
    problem = models.CharField(max_length=500)
    own_problem = models.ForeignKey(
        Problem,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="series",
        db_index=False,
    )
    sizes = models.JSONField(default=dict)
    target = models.CharField(max_length=40, blank=True)
    device_name = models.CharField(max_length=200)
    toolchain = models.CharField(max_length=40, blank=True)
    metric = models.CharField(max_length=80)
    unit = models.CharField(max_length=40, blank=True)
    better = models.CharField(max_length=6, default=LOWER)
    points = models.PositiveIntegerField(default=0)
    branch_points = models.PositiveIntegerField(default=0, db_default=0)
    not_positive = models.PositiveIntegerField(default=0, db_default=0)
    withdrawn = models.PositiveIntegerField(default=0, db_default=0)
    first_at = models.DateTimeField(null=True, blank=True)
    last_at = models.DateTimeField(null=True, blank=True)
    unchecked_from = models.DateTimeField(null=True, blank=True)
    stale_at = models.DateTimeField(null=True, blank=True)
    rolled_up_to = models.DateTimeField(null=True, blank=True)
    rolled_up = models.PositiveIntegerField(default=0, db_default=0)
    suspected_ratio = models.FloatField(null=True, blank=True)
    suspected_n = models.PositiveSmallIntegerField(default=0, db_default=0)
    suspected_from = models.DateTimeField(null=True, blank=True)
    suspicion_handled = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    repository = models.CharField(max_length=300, blank=True, default="", db_default="")
    path = models.CharField(max_length=1000, blank=True, default="", db_default="")
    needs_rules = models.BooleanField(default=True, db_default=True)
    # Without indexes, which every point would write to: rules change rarely.
    pattern_rule = models.ForeignKey(
        "codegen_app.PatternRule",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="series",
        db_index=False,
    )
    owner_rule = models.ForeignKey(
        "codegen_app.PatternRule",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="owned_series",
        db_index=False,
    )

    class Meta:
        ordering = ["problem", "metric", "pk"]
        verbose_name_plural = "series"
        indexes = [
            models.Index(fields=["-last_at", "-id"], name="series_by_latest"),
            models.Index(
                fields=["unchecked_from", "id"],
                condition=Q(unchecked_from__isnull=False),
                name="series_unchecked",
            ),
            models.Index(
                fields=["stale_at", "id"],
                condition=Q(stale_at__isnull=False),
                name="series_stale",
            ),
            models.Index(
                fields=["-suspected_from", "-id"],
                condition=Q(suspected_from__isnull=False),
                name="series_suspected",
            ),
            # Each point writes to every index of its series: external series are in none of our
            # indexes, and no digest is looked up by prefix.
            models.Index(
                fields=["own_problem"],
                condition=Q(own_problem__isnull=False),
                name="series_by_own_problem",
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["digest"], name="series_once"),
            models.CheckConstraint(
                name="series_is_of_something", condition=~Q(problem="") & ~Q(metric="")
            ),
            models.CheckConstraint(
                name="series_suspicion_whole",
                condition=Q(
                    suspected_n=0, suspected_ratio__isnull=True, suspected_from__isnull=True
                )
                | Q(suspected_n__gt=0, suspected_ratio__isnull=False, suspected_from__isnull=False),
            ),
            models.CheckConstraint(
                name="series_better_known", condition=Q(better__in=(LOWER, HIGHER))
            ),
        ]

    def __str__(self) -> str:
        return f"{self.metric} of {self.problem} on {self.device_name}"

    @property
    def is_generated(self) -> bool:
        """Return whether its points were generated (``scheduler.track.generated``); this is shown
        wherever the series is named."""
        return self.device_name.startswith(LABEL)

    @property
    def detected_from(self) -> datetime | None:
        """Return the place in the history after what was rolled up; None if nothing was."""
        return self.rolled_up_to and self.rolled_up_to + timedelta(microseconds=1)

    def get_absolute_url(self) -> str:
        return reverse("series", args=[self.pk])


class Revision(models.Model):
    """A state of some source, as named by those who measured it; points of one revision are
    compared with points of another. ``at`` is when it was created, if known;
    ``subject`` and ``author`` are those of its commit.

    A commit that is sent on two branches has two rows. ``is_trunk`` is how its points are marked
    (``Datum``); ``merge_base`` is the name of the revision of the trunk that its branch forked
    from, ``merge_base_at`` when that was created, ``pull_request`` the number or URL of its pull
    request; blank or null if unknown. Of a branch's
    revision, ``last_stored_at`` is when a point was last stored, to the hour: null if it has none
    that may be deleted (``services/branch_retention.py``).
    """

    id = models.AutoField(primary_key=True)  # four bytes in each point
    repository = models.CharField(max_length=300, blank=True)
    name = models.CharField(max_length=100, help_text="A commit, a version …")
    branch = models.CharField(max_length=200, blank=True)
    at = models.DateTimeField(null=True, blank=True)
    is_trunk = models.BooleanField(default=True, db_default=True)
    merge_base = models.CharField(max_length=100, blank=True, db_default="")
    merge_base_at = models.DateTimeField(null=True, blank=True)
    pull_request = models.CharField(max_length=300, blank=True, db_default="")
    last_stored_at = models.DateTimeField(null=True, blank=True)
    subject = models.CharField(max_length=1000, blank=True, default="", db_default="")
    author = models.CharField(max_length=200, blank=True, default="", db_default="")

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["repository", "name", "branch"], name="revision_once_a_branch"
            ),
            models.CheckConstraint(name="revision_has_name", condition=~Q(name="")),
        ]
        indexes = [
            # The revisions of an alert's window.
            models.Index(fields=["repository", "at"], name="revision_by_time"),
        ]

    def __str__(self) -> str:
        return self.name[:12] if len(self.name) == 40 else self.name

    @property
    def is_generated(self) -> bool:
        """Return whether it is of a generated history, in which nothing was measured."""
        return self.repository.startswith(LABEL)


class Conditions(models.Model):
    """What a figure was measured of and under, besides its series: equal ones are one row.

    ``facts`` are the known ones of ``scheduler.results.points.model.FACTS``: compiler and its
    version, flags, driver, runtime, host, clocks; digests of source and code object, configuration,
    resources. They stay when their kernel or build is deleted.
    """

    id = models.AutoField(primary_key=True)  # four bytes in each point
    digest = models.CharField(max_length=64)
    facts = models.JSONField(default=dict)

    class Meta:
        verbose_name_plural = "conditions"
        constraints = [models.UniqueConstraint(fields=["digest"], name="conditions_once")]

    def __str__(self) -> str:
        return self.digest[:12]


class Source(models.TextChoices):
    """How a point was stored."""

    TUNING = "tuning", "a tuning run here"
    AGAIN = "again", "measured again here"
    IMPORT = "import", "imported results of Kiln"
    API = "api", "sent with a token"
    GENERATED = "generated", "generated, not measured"


VALID = """NOT EXISTS (
    SELECT FROM codegen_app_withdrawal AS withdrawal
    WHERE withdrawal.datum_id = {datum}.id AND withdrawal.restored_at IS NULL
)"""
"""The condition that a point was not withdrawn, for statements that call it ``datum``."""


class DatumQuerySet(models.QuerySet["Datum"]):
    """Points."""

    def trunk(self) -> DatumQuerySet:
        """Return the points of the trunk that were not withdrawn: those of a history."""
        return self.valid().filter(is_trunk=True)

    def valid(self) -> DatumQuerySet:
        """Return the points that were not withdrawn."""
        standing = Withdrawal.objects.filter(datum=OuterRef("pk"), restored_at=None)
        return self.filter(~Exists(standing))


class Datum(models.Model):
    """One point of a series: ``value`` in the series' unit, its interval (null if unknown), ``n``
    samples of which ``samples`` are stored (null once they were rolled up).

    ``at`` is its place in the history: the revision's time if it is known, so that a revision that
    is measured later has its proper place; else ``measured_at``. Kiln's own points have ``kernel``,
    ``build``, ``run`` and ``result`` while these rows exist; a result is in a series once.

    ``is_trunk`` says whether the revision is of the repository's trunk (``Repository``). A history
    is the trunk's: levels, causes, noise floors, rhythm, baselines, histories and latest values
    read ``trunk()`` points only (in SQL: ``is_trunk AND`` ``VALID``). Points of other branches are
    shown beside them, and compared revision by revision. A query of a series names ``is_trunk``,
    since each of the two kinds has its own index.

    A point takes at most 200 bytes with its indexes, samples apart (docs/adr/0053-room.md): a
    column has its own index only if it is needed to read a history or to delete what a point refers
    to, and the latter cover only points with such a reference.
    """

    series = models.ForeignKey(
        Series, on_delete=models.PROTECT, related_name="data", db_index=False
    )
    at = models.DateTimeField()
    measured_at = models.DateTimeField()
    value = models.FloatField()
    low = models.FloatField(null=True, blank=True)
    high = models.FloatField(null=True, blank=True)
    n = models.PositiveIntegerField(default=1)
    samples = ArrayField(models.FloatField(), null=True, blank=True)
    revision = models.ForeignKey(
        Revision, on_delete=models.PROTECT, related_name="data", db_index=False
    )
    conditions = models.ForeignKey(
        Conditions, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    source = models.CharField(max_length=12, choices=Source.choices)
    is_trunk = models.BooleanField(default=True, db_default=True)
    batch = models.ForeignKey(
        Batch, null=True, blank=True, on_delete=models.PROTECT, related_name="data", db_index=False
    )
    kernel = models.ForeignKey(
        GeneratedKernel,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="data",
        db_index=False,
    )
    build = models.ForeignKey(
        Build, null=True, blank=True, on_delete=models.SET_NULL, related_name="data", db_index=False
    )
    run = models.ForeignKey(
        TuningRun,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="data",
        db_index=False,
    )
    result = models.ForeignKey(
        BenchmarkResult,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="data",
        db_index=False,
    )

    objects = DatumQuerySet.as_manager()

    class Meta:
        ordering = ["series", "at", "pk"]
        verbose_name_plural = "data"
        indexes = [
            # Nothing else, not even the key: PostgreSQL fills the pages of an index of at most two
            # keys where each series grows at its end, and splits those of wider ones in halves
            # (``_bt_afternewitemoff``).
            models.Index(fields=["series", "at"], condition=Q(is_trunk=True), name="datum_history"),
            models.Index(
                fields=["series", "at"], condition=Q(is_trunk=False), name="datum_of_branches"
            ),
            # Without the series, equal entries share their key.
            models.Index(fields=["revision"], name="datum_by_revision"),
            # Points of a batch are stored together, and few batches are ever looked for.
            BrinIndex(fields=["batch"], autosummarize=True, name="datum_by_batch"),
            models.Index(
                fields=["source", "measured_at"],
                condition=Q(samples__isnull=False),
                name="datum_samples_by_age",
            ),
            *(
                models.Index(
                    fields=[name],
                    condition=Q(**{f"{name}__isnull": False}),
                    name=f"datum_by_{name}",
                )
                for name in ("kernel", "build", "run")
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["result", "series"],
                condition=Q(result__isnull=False),
                name="datum_result_once",
            ),
            models.CheckConstraint(name="datum_n_is_positive", condition=Q(n__gte=1)),
            models.CheckConstraint(
                name="datum_interval_holds_value",
                condition=Q(low__isnull=True, high__isnull=True)
                | (Q(low__lte=F("value")) & Q(high__gte=F("value"))),
            ),
            models.CheckConstraint(
                name="datum_source_known", condition=Q(source__in=Source.values)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.value:g} at {self.at:%Y-%m-%d %H:%M}"

    def get_absolute_url(self) -> str:
        return reverse("series_point", args=[self.series_id, self.pk])


class Withdrawal(models.Model):
    """A point is excluded from comparisons while this holds. ``restored_at``: it was restored.
    ``alert``: it was set aside with all points of a machine, by Kiln itself (``by`` is null).

    A separate table: few points are ever withdrawn, and histories are read from an index of the
    points alone.
    """

    datum = models.ForeignKey(Datum, on_delete=models.CASCADE, related_name="withdrawals")
    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="withdrawals")
    reason = models.CharField(max_length=500)
    at = models.DateTimeField(auto_now_add=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    alert = models.ForeignKey(
        "Alert",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="withdrawals",
        db_index=False,
    )
    restored_at = models.DateTimeField(null=True, blank=True)
    restored_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ["series", "pk"]
        indexes = [
            models.Index(
                fields=["alert", "series"],
                condition=Q(alert__isnull=False),
                name="withdrawal_by_alert",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["datum"],
                condition=Q(restored_at__isnull=True),
                name="withdrawal_once_a_point",
            ),
            models.CheckConstraint(name="withdrawal_has_reason", condition=~Q(reason="")),
        ]

    def __str__(self) -> str:
        return f"{self.datum}: {self.reason}"
