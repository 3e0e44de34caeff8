"""Histories: a figure of a problem over time, whoever measured it."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.urls import reverse

from codegen_app.models.batch import Batch
from codegen_app.models.benchmark_result import BenchmarkResult
from codegen_app.models.build import Build
from codegen_app.models.generated_kernel import GeneratedKernel
from codegen_app.models.template_node import Problem
from codegen_app.models.tuning_run import TuningRun
from scheduler.track.generated_label import LABEL

LOWER, HIGHER = "lower", "higher"


class Series(models.Model):
    """One metric of one problem at one binding of its sizes, on one device model for one target,
    with one kind of toolchain (its name without the version).

    ``digest`` is of all these (``scheduler.results.points.model.SeriesKey``): a new kernel, driver
    or compiler version goes on with the series. ``own_problem`` is the row where the figures are of
    Kiln's own problems, whose digest is then part of the identity; else ``problem`` is a name that
    somebody sent. ``better`` says which way is an improvement.

    ``points``, ``first_at`` and ``last_at`` are kept beside the points, for lists that must not
    count them. Of the points ``withdrawn`` were withdrawn, and ``not_positive`` others are at or
    below 0: neither are compared with others, these because changes are ratios.
    ``unchecked_from`` is the earliest place in history at which a point was added, or taken away,
    that no detector has looked at: null once there is none. ``stale_at`` is when its data count as
    missing unless points come: null where nothing says how often they should.
    """

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
    not_positive = models.PositiveIntegerField(default=0, db_default=0)
    withdrawn = models.PositiveIntegerField(default=0, db_default=0)
    first_at = models.DateTimeField(null=True, blank=True)
    last_at = models.DateTimeField(null=True, blank=True)
    unchecked_from = models.DateTimeField(null=True, blank=True)
    stale_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

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
            # Each point writes to every index that its series is in: those that others send are
            # in no index of ours, and no digest is looked for by its beginning.
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
                name="series_better_known", condition=Q(better__in=(LOWER, HIGHER))
            ),
        ]

    def __str__(self) -> str:
        return f"{self.metric} of {self.problem} on {self.device_name}"

    @property
    def is_generated(self) -> bool:
        """Whether its points were made up (``scheduler.track.generated``): wherever the series is
        named, that is shown."""
        return self.device_name.startswith(LABEL)

    def get_absolute_url(self) -> str:
        return reverse("series", args=[self.pk])


class Revision(models.Model):
    """A state of some source, as those who measured it call it; points of one are compared with
    those of another. ``at`` is when it was made, where that was said."""

    repository = models.CharField(max_length=300, blank=True)
    name = models.CharField(max_length=100, help_text="A commit, a version …")
    branch = models.CharField(max_length=200, blank=True)
    at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["repository", "name", "branch"], name="revision_once_a_branch"
            ),
            models.CheckConstraint(name="revision_has_name", condition=~Q(name="")),
        ]

    def __str__(self) -> str:
        return self.name[:12] if len(self.name) == 40 else self.name

    @property
    def is_generated(self) -> bool:
        """Whether it is of a generated history: nothing of it was measured, nor made."""
        return self.repository.startswith(LABEL)


class Conditions(models.Model):
    """What a figure was measured of and under, beside what its series says: equal ones are one row.

    ``facts`` are those of ``scheduler.results.points.model.FACTS`` that are known: compiler and
    its version, flags, driver, runtime, host, clocks; digests of source and code object,
    configuration, resources. They stay when the kernel or build that they tell of is deleted.
    """

    digest = models.CharField(max_length=64)
    facts = models.JSONField(default=dict)

    class Meta:
        verbose_name_plural = "conditions"
        constraints = [models.UniqueConstraint(fields=["digest"], name="conditions_once")]

    def __str__(self) -> str:
        return self.digest[:12]


class Source(models.TextChoices):
    """How a point came here."""

    TUNING = "tuning", "a tuning run here"
    AGAIN = "again", "measured again here"
    IMPORT = "import", "imported results of Kiln"
    API = "api", "sent with a token"
    GENERATED = "generated", "generated, not measured"


VALID = """NOT EXISTS (
    SELECT FROM codegen_app_withdrawal AS withdrawal
    WHERE withdrawal.datum_id = {datum}.id AND withdrawal.restored_at IS NULL
)"""
"""That a point was not withdrawn, for statements in which it is called ``datum``."""


class DatumQuerySet(models.QuerySet["Datum"]):
    """Points."""

    def valid(self) -> DatumQuerySet:
        """Those that were not withdrawn."""
        held = Withdrawal.objects.filter(datum=OuterRef("pk"), restored_at=None)
        return self.filter(~Exists(held))


class Datum(models.Model):
    """One point of a series: ``value`` in the series' unit, the interval that holds it (null where
    it is not known), ``n`` samples of which ``samples`` are kept (null once they were rolled up).

    ``at`` is its place in the history: the revision's moment where that is known, so that a
    revision that is measured later stands where it belongs; else ``measured_at``.
    ``kernel``, ``build``, ``run`` and ``result`` are there for Kiln's own, as long as those rows
    are; a result is in a series once.

    Ten million rows: no column has an index of its own that is not needed to read a history or to
    delete what a point refers to, and those cover only the points that refer to something
    (docs/adr/0020-series.md).
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
            # With all that a history shows: points of a series arrive one by one, each on a page
            # of its own, and 5,000 pages take up to a second to read where 80 of the index do.
            models.Index(
                fields=["series", "at", "id"],
                include=["value", "low", "high", "n", "revision", "conditions", "source"],
                name="datum_history",
            ),
            models.Index(fields=["revision", "series"], name="datum_by_revision"),
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
                for name in ("batch", "kernel", "build", "run")
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
    """A point is not compared with others while this holds. ``restored_at``: it was taken back.

    A table of its own: few points are ever withdrawn, and histories are read from an index of the
    points alone.
    """

    datum = models.ForeignKey(Datum, on_delete=models.CASCADE, related_name="withdrawals")
    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="withdrawals")
    reason = models.CharField(max_length=500)
    at = models.DateTimeField(auto_now_add=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    restored_at = models.DateTimeField(null=True, blank=True)
    restored_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ["series", "pk"]
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
