"""The rules by patterns, in their order, each with the number of series that it decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count

from codegen_app.tracking.models import PatternRule, Series
from codegen_app.tracking.rules.book import MAX_RULES
from codegen_app.tracking.rules.codeowners import OwnersFile
from codegen_app.tracking.rules.resolution import has_unapplied_rules
from codegen_app.tracking.rules.trial import RuleTrial
from codegen_app.web.row import build_row, username
from scheduler.track.patterns import FACT_NAMES


@dataclass(frozen=True)
class RuleRow:
    """A rule. ``n_thresholds`` and ``n_owned`` are the series whose thresholds, and whose owner, it
    decides; ``least_effect`` is a fraction of the level."""

    id: int
    url: str
    position: int
    patterns: Mapping[str, tuple[str, ...]]
    text: str
    sets_thresholds: bool
    least_effect: float | None
    muted: bool
    stale_after: timedelta | None
    sets_owner: bool
    owner: str
    import_name: str
    reason: str
    changed_at: datetime
    changed_by: str
    n_thresholds: int
    n_owned: int


@dataclass(frozen=True)
class RuleList:
    """All rules. ``unfinished``: workers are still applying the latest change to the series.
    ``trial`` is the effect of a proposed rule, ``file`` a CODEOWNERS file before its import."""

    rules: tuple[RuleRow, ...]
    n_series: int
    unfinished: bool
    trial: RuleTrial | None = None
    file: OwnersFile | None = None

    @property
    def is_full(self) -> bool:
        return len(self.rules) >= MAX_RULES


@dataclass(frozen=True)
class RulePage:
    """One rule, and the effect of a proposed edit."""

    rule: RuleRow
    n_rules: int
    unfinished: bool
    trial: RuleTrial | None = None


def rule_list() -> RuleList:
    """Return the rules in their order (4 queries)."""
    rows = PatternRule.objects.filter(removed_at=None).select_related("owner", "changed_by")
    counts: dict[str, dict[int | None, int]] = {}
    for name in ("pattern_rule", "owner_rule"):
        series = Series.objects.filter(last_at__isnull=False).order_by().values_list(name)
        counts[name] = dict(series.annotate(count=Count("pk")))
    return RuleList(
        rules=tuple(
            rule_row(
                row, counts["pattern_rule"].get(row.pk, 0), counts["owner_rule"].get(row.pk, 0)
            )
            for row in rows.order_by("position", "pk")
        ),
        n_series=sum(counts["pattern_rule"].values()),
        unfinished=has_unapplied_rules(),
    )


def rule_page(pk: int) -> RulePage:
    """Return a rule by number (5 queries). Raises ``PatternRule.DoesNotExist``, also for a removed
    one."""
    rows = PatternRule.objects.filter(removed_at=None)
    row = rows.select_related("owner", "changed_by").get(pk=pk)
    series = Series.objects.filter(last_at__isnull=False)
    n_thresholds = series.filter(pattern_rule=pk).count()
    n_owned = series.filter(owner_rule=pk).count()
    return RulePage(rule_row(row, n_thresholds, n_owned), rows.count(), has_unapplied_rules())


def rule_row(row: PatternRule, n_thresholds: int, n_owned: int) -> RuleRow:
    return build_row(
        RuleRow,
        row,
        url=row.get_absolute_url(),
        patterns={name: tuple(getattr(row, name)) for name in FACT_NAMES},
        text=str(row.patterns),
        owner=username(row.owner),
        changed_by=username(row.changed_by),
        n_thresholds=n_thresholds,
        n_owned=n_owned,
    )
