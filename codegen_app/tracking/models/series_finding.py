"""Findings about the course of one series, which are no change of its level."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from codegen_app.tracking.models.alert import Alert, AlertKind
from codegen_app.tracking.models.series import Revision, Series


class SeriesExamination(models.Model):
    """When a series was last examined for a drift, a change of spread and a second mode, and how
    many points it had, of which ``withdrawn`` were withdrawn. A row of its own: series are updated
    at each point."""

    series = models.OneToOneField(
        Series, primary_key=True, on_delete=models.CASCADE, related_name="examination"
    )
    points = models.PositiveIntegerField()
    withdrawn = models.PositiveIntegerField()
    examined_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"examination of {self.series_id}"


class SeriesFinding(models.Model):
    """What an alert of the kinds drift, change of spread or second mode is about.

    ``revision`` is that of the first point of it, at ``alert.at`` in the history. ``ratio`` is
    after / before with its 95% interval: of a drift, of the level now and where it began; of a
    spread, of the standard deviations (fractions of the level); of a second mode, of that mode and
    the main one. ``n_after`` points since then show it, ``n_before`` precede; of a second mode the
    latest ``n_after`` points, of which the fraction ``share`` is on it. ``misses`` counts the
    examinations in a row that found nothing; ``ended_at`` is when there were enough of them.
    """

    alert = models.OneToOneField(
        Alert, primary_key=True, on_delete=models.CASCADE, related_name="series_finding"
    )
    series = models.ForeignKey(Series, on_delete=models.PROTECT, related_name="findings")
    kind = models.CharField(max_length=12)
    revision = models.ForeignKey(Revision, on_delete=models.PROTECT, related_name="+")
    before = models.FloatField()
    after = models.FloatField()
    ratio = models.FloatField()
    low = models.FloatField()
    high = models.FloatField()
    n_before = models.PositiveIntegerField()
    n_after = models.PositiveIntegerField()
    share = models.FloatField(null=True, blank=True)
    misses = models.PositiveSmallIntegerField(default=0)
    examined_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["series", "kind"],
                condition=Q(ended_at__isnull=True),
                name="series_finding_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of series {self.series_id}"

    @property
    def summary(self) -> str:
        """Return what was found and since when, in a few words; no query if the alert is loaded."""
        since = f"since {self.alert.at:%Y-%m-%d}"
        if self.kind == AlertKind.DRIFT:
            return f"creeping, {self.ratio - 1:+.1%} {since}"
        if self.kind == AlertKind.SPREAD:
            spreads = f"by {self.after:.2%} of the level, {self.before:.2%} before"
            return f"varies {self.ratio:.2g} times as much {since}: {spreads}"
        share = f"{self.share or 0:.0%} of the latest {self.n_after} points"
        return f"second mode {self.ratio - 1:+.1%} from the main one {since}: {share}"

    @property
    def interval(self) -> str:
        """Return the 95% interval of the ratio, as the summary gives it."""
        if self.kind == AlertKind.SPREAD:
            return f"{self.low:.2g} to {self.high:.2g}"
        return f"{self.low - 1:+.1%} to {self.high - 1:+.1%}"
