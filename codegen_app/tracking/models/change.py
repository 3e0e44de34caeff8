"""Changes found in series, settings of a series, and where its level begins again."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Abs, Ln
from django.urls import reverse

from codegen_app.tracking.models.alert import Alert, AlertKind
from codegen_app.tracking.models.series import Datum, Revision, Series

LARGEST_FIRST = (Abs(Ln(F("after") / F("before"))).desc(), "pk")
"""The order of changes by their distance from a ratio of 1."""

LISTED = Q(withdrawn_at=None) | Q(alert__kind=AlertKind.MACHINE)
"""The changes that alerts list. Those of a machine are withdrawn when its points are set aside."""


class Change(models.Model):
    """A series' level changed at ``datum``, the first point of the new level.

    ``before`` and ``after`` are medians in the series' unit of ``n_before`` and ``n_after`` values;
    ``low`` and ``high`` bound after / before at 95% (null with too few values); ``errors`` are the
    standard errors between the two. ``previous`` is the last revision of the old level. ``cause``,
    ``rule`` and ``explanation`` are those of ``scheduler.track.causes``, empty until
    ``explained_at``. A change that later points disprove is withdrawn and stays.

    Noise may put it a few points too early or too late. It is after ``good_revision``, at ``since``
    in the history, and at the latest at ``bad_revision``, at ``until``: the nearest points whose
    values belong to the old and to the new level. Null in rows of earlier versions.

    ``shown_at`` is the place in history of the point that showed it; no later point had a part in
    that. Points that arrive since improve its figures (``n_after`` grows up to 30): it is then
    explained, and its alerts are updated (``raised_at``), again.
    """

    series = models.ForeignKey(Series, on_delete=models.PROTECT, related_name="changes")
    datum = models.ForeignKey(Datum, on_delete=models.PROTECT, related_name="changes")
    at = models.DateTimeField()
    shown_at = models.DateTimeField(null=True, blank=True)
    revision = models.ForeignKey(Revision, on_delete=models.PROTECT, related_name="changes")
    previous = models.ForeignKey(
        Revision, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    good_revision = models.ForeignKey(
        Revision, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    since = models.DateTimeField(null=True, blank=True)
    bad_revision = models.ForeignKey(
        Revision, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    until = models.DateTimeField(null=True, blank=True)
    before = models.FloatField()
    after = models.FloatField()
    low = models.FloatField(null=True, blank=True)
    high = models.FloatField(null=True, blank=True)
    n_before = models.PositiveIntegerField()
    n_after = models.PositiveIntegerField()
    errors = models.FloatField()
    worse = models.BooleanField()
    cause = models.CharField(max_length=20, blank=True)
    rule = models.CharField(max_length=100, blank=True)
    explanation = models.JSONField(default=dict, blank=True)
    found_at = models.DateTimeField(auto_now_add=True)
    explained_at = models.DateTimeField(null=True, blank=True)
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    raised_at = models.DateTimeField(null=True, blank=True)
    alert = models.ForeignKey(
        Alert, null=True, blank=True, on_delete=models.PROTECT, related_name="changes"
    )

    class Meta:
        ordering = ["series", "at", "pk"]
        indexes = [
            models.Index(fields=["series", "at"], name="change_history"),
            models.Index(
                fields=["found_at"],
                condition=Q(withdrawn_at__isnull=True),
                name="change_by_discovery",
            ),
            models.Index(
                fields=["id"],
                condition=Q(explained_at__isnull=True, withdrawn_at__isnull=True),
                name="change_unexplained",
            ),
            models.Index(
                fields=["revision", "id"],
                condition=Q(raised_at__isnull=True),
                name="change_unraised",
            ),
            # The worst changes of an alert with thousands, in order.
            models.Index(
                F("alert"),
                Abs(Ln(F("after") / F("before"))).desc(),
                F("id"),
                condition=Q(alert__isnull=False, withdrawn_at__isnull=True),
                name="change_worst",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["datum"], condition=Q(withdrawn_at__isnull=True), name="change_once_a_point"
            ),
            models.CheckConstraint(
                name="change_levels_above_zero", condition=Q(before__gt=0, after__gt=0)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.series}: {self.ratio:.3f} times as much from {self.revision} on"

    def get_absolute_url(self) -> str:
        return reverse("change", args=[self.pk])

    @property
    def ratio(self) -> float:
        """Return after / before."""
        return self.after / self.before


class SeriesRule(models.Model):
    """A series' settings in place of the defaults; why, and by whom.

    ``least_effect`` is a fraction of the level (0.02: 2%); ``muted`` series have changes and no
    alerts; without a new point for ``stale_after`` the series raises its own alert.
    """

    series = models.OneToOneField(Series, on_delete=models.CASCADE, related_name="rule")
    least_effect = models.FloatField(null=True, blank=True)
    muted = models.BooleanField(default=False)
    stale_after = models.DurationField(null=True, blank=True)
    reason = models.CharField(max_length=500)
    changed_at = models.DateTimeField(auto_now=True)
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="seriesrule_effect_is_a_part",
                condition=Q(least_effect__isnull=True)
                | Q(least_effect__gte=0.001, least_effect__lte=1),
            ),
            models.CheckConstraint(name="seriesrule_has_reason", condition=~Q(reason="")),
        ]

    def __str__(self) -> str:
        return f"Rule of {self.series}"


class Baseline(models.Model):
    """A level of a series begins again at ``at``, because a person said so: points before it are
    not compared with points after it. ``removed_at``: it was removed."""

    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="baselines")
    at = models.DateTimeField()
    reason = models.CharField(max_length=500)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    removed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["series", "at"]
        constraints = [
            models.UniqueConstraint(
                fields=["series", "at"],
                condition=Q(removed_at__isnull=True),
                name="baseline_once_a_moment",
            ),
            models.CheckConstraint(name="baseline_has_reason", condition=~Q(reason="")),
        ]

    def __str__(self) -> str:
        return f"{self.series} from {self.at:%Y-%m-%d %H:%M}"
