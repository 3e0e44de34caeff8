"""Settings of many series by patterns: rules in an order, and budgets."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.urls import reverse

from scheduler.track.patterns import FACT_NAMES, MAX_CHARACTERS, SeriesPatterns

MIN_EFFECT, MAX_EFFECT = 0.001, 1.0


def _patterns_field() -> ArrayField[list[str], list[str]]:
    return ArrayField(models.CharField(max_length=MAX_CHARACTERS), default=list, blank=True)


class PatternSet(models.Model):
    """The series that patterns select: alternatives by fact, an empty list matches every series
    (``scheduler.track.patterns``)."""

    repository = _patterns_field()
    problem = _patterns_field()
    device = _patterns_field()
    metric = _patterns_field()
    path = _patterns_field()

    class Meta:
        abstract = True

    @property
    def patterns(self) -> SeriesPatterns:
        return SeriesPatterns(**{name: tuple(getattr(self, name)) for name in FACT_NAMES})


class PatternRule(PatternSet):
    """Thresholds or an owner, or both, for series that match.

    The first rule by ``position`` that matches a series and decides its thresholds is the series'
    ``pattern_rule``; the first that decides the owner is its ``owner_rule``. A rule that decides
    something and leaves it empty restores the default for its series: no owner, for example.

    A row does not change, except for its position: an edited rule is another row, so that a series
    shows which thresholds it was checked with. ``removed_at``: the rule is in effect no longer, and
    is deleted once no series refers to it. ``import_name`` names the CODEOWNERS file it came from.
    """

    position = models.PositiveIntegerField()
    sets_thresholds = models.BooleanField(default=False)
    least_effect = models.FloatField(null=True, blank=True)
    muted = models.BooleanField(default=False)
    stale_after = models.DurationField(null=True, blank=True)
    sets_owner = models.BooleanField(default=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    import_name = models.CharField(max_length=100, blank=True)
    reason = models.CharField(max_length=500)
    changed_at = models.DateTimeField(auto_now_add=True)
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    removed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["position", "pk"]
        verbose_name = "rule"
        constraints = [
            models.CheckConstraint(
                name="patternrule_effect_is_a_part",
                condition=Q(least_effect__isnull=True)
                | Q(least_effect__gte=MIN_EFFECT, least_effect__lte=MAX_EFFECT),
            ),
            models.CheckConstraint(
                name="patternrule_decides_something",
                condition=Q(sets_thresholds=True) | Q(sets_owner=True),
            ),
            models.CheckConstraint(
                name="patternrule_thresholds_if_set",
                condition=Q(sets_thresholds=True)
                | Q(least_effect__isnull=True, muted=False, stale_after__isnull=True),
            ),
            models.CheckConstraint(
                name="patternrule_owner_if_set",
                condition=Q(sets_owner=True) | Q(owner__isnull=True),
            ),
            models.CheckConstraint(name="patternrule_has_reason", condition=~Q(reason="")),
        ]

    def __str__(self) -> str:
        return f"rule {self.position} ({self.patterns})"

    def get_absolute_url(self) -> str:
        return reverse("rule", args=[self.pk])


class RuleSweep(models.Model):
    """The one row that says how far the series have been matched with the rules since these last
    changed: up to the key ``done_to``, null if all were. A change of rules locks it."""

    done_to = models.BigIntegerField(null=True, blank=True)

    def __str__(self) -> str:
        return "done" if self.done_to is None else f"done to series {self.done_to}"


class BudgetStatistic(models.TextChoices):
    P50 = "p50", "p50"
    P95 = "p95", "p95"
    MAX = "max", "maximum"
    GEOMEAN = "geomean", "geometric mean"


class Budget(PatternSet):
    """A limit that a statistic of the current levels of matching series is to meet: at most
    ``limit``, or at least, if more is better in the unit.

    Only series in ``unit`` count. ``limit`` is in that unit.
    """

    name = models.CharField(max_length=100, unique=True)
    statistic = models.CharField(max_length=8, choices=BudgetStatistic.choices)
    limit = models.FloatField()
    unit = models.CharField(max_length=40, blank=True)
    due = models.DateField(null=True, blank=True)
    changed_at = models.DateTimeField(auto_now=True)
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(name="budget_limit_above_zero", condition=Q(limit__gt=0)),
            models.CheckConstraint(name="budget_has_name", condition=~Q(name="")),
            models.CheckConstraint(
                name="budget_statistic_known", condition=Q(statistic__in=BudgetStatistic.values)
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("budget", args=[self.pk])
