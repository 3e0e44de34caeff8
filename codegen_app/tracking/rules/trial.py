"""What a rule would do, before it is saved: which series it matches and decides, and which changes
would appear or vanish in the most affected ones. Nothing is written.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from django.db.models import Count, Q

from codegen_app.tracking.models import PatternRule, Series
from codegen_app.tracking.queries.series_summary import SeriesHead, series_head
from codegen_app.tracking.rules import book
from codegen_app.tracking.rules.book import RuleDraft
from codegen_app.tracking.rules.matching import matching_series
from codegen_app.tracking.rules.resolution import RuleMatcher, series_facts, standing_rules
from codegen_app.tracking.rules.settings import (
    RULES_OF_SERIES,
    SeriesSettings,
    rule_settings,
    series_settings,
)
from codegen_app.tracking.services import thresholds
from codegen_app.tracking.services.thresholds import Proposal, TrialChange

MAX_TRIED = 8
"""Series whose histories are tried during a request."""
MAX_TRIED_POINTS = 2_000
MAX_COMPARED = 5_000
"""Series that are matched with all rules during a request."""


@dataclass(frozen=True)
class TriedSeries:
    """A series under the rule: the changes that would be gone or new, of its latest points."""

    head: SeriesHead
    gone: int
    new: int
    kept: int
    changes: tuple[TrialChange, ...]


@dataclass(frozen=True)
class RuleTrial:
    """Of ``matching`` series the rule would decide the thresholds of ``decided`` and the owner of
    ``owned``; the others have an earlier rule or ``own`` thresholds.

    ``affected`` series would have other thresholds than now, with the rule or because an edited one
    no longer matches them; ``tried`` are those of them with the most changes, of at most ``points``
    points each. ``compared`` series were looked at, if there are more.
    """

    matching: int
    decided: int
    owned: int
    own: int
    affected: int
    muted: int
    unmuted: int
    owners: tuple[tuple[str, int], ...]
    compared: int | None
    tried: tuple[TriedSeries, ...]
    points: int = MAX_TRIED_POINTS

    @property
    def gone(self) -> int:
        return sum(row.gone for row in self.tried)

    @property
    def new(self) -> int:
        return sum(row.new for row in self.tried)


def try_rule(draft: RuleDraft) -> RuleTrial:
    """Return a draft's effect (5 queries, and 8 more for each of at most ``MAX_TRIED`` series).

    Raises ``UserError`` for a draft that cannot be saved.
    """
    rule = draft.row(position=0, reason="tried")
    rules = standing_rules()
    proposed = RuleMatcher(book.ordered(rules, rule, draft))
    keys = matching_series(draft.patterns)
    candidates = set(keys)
    if draft.replaces is not None:
        decides = Q(pattern_rule=draft.replaces) | Q(owner_rule=draft.replaces)
        candidates |= set(Series.objects.filter(decides).values_list("pk", flat=True))
    compared = sorted(candidates)[:MAX_COMPARED]
    found = Series.objects.select_related(*RULES_OF_SERIES, "owner_rule__owner").in_bulk(compared)
    counts: Counter[str] = Counter()
    owners: Counter[str] = Counter()
    affected: dict[int, SeriesSettings] = {}
    for series in found.values():
        thresholds_rule, owner_rule = proposed.match(series_facts(series))
        is_own = hasattr(series, "rule")
        counts["decided"] += thresholds_rule is rule and not is_own
        counts["owned"] += owner_rule is rule
        counts["own"] += is_own and rule.sets_thresholds
        if _owner(owner_rule) != _owner(series.owner_rule):
            owners[_owner(owner_rule)] += 1
        old, new = series_settings(series), rule_settings(thresholds_rule)
        if not is_own and old != new:
            affected[series.pk] = new
            counts["muted"] += new.muted and not old.muted
            counts["unmuted"] += old.muted and not new.muted
    return RuleTrial(
        matching=len(keys),
        decided=counts["decided"],
        owned=counts["owned"],
        own=counts["own"],
        affected=len(affected),
        muted=counts["muted"],
        unmuted=counts["unmuted"],
        owners=tuple(owners.most_common()),
        compared=len(compared) if len(compared) < len(candidates) else None,
        tried=_tried(affected),
    )


def _owner(rule: PatternRule | None) -> str:
    owner = rule.owner if rule is not None else None
    return owner.get_username() if owner is not None else ""


def _tried(affected: dict[int, SeriesSettings]) -> tuple[TriedSeries, ...]:
    """Return the effect on the series with the most changes, then the most points."""
    standing = Count("changes", filter=Q(changes__withdrawn_at=None))
    rows = Series.objects.filter(pk__in=affected).annotate(n_changes=standing)
    result = []
    for series in rows.order_by("-n_changes", "-points", "pk")[:MAX_TRIED]:
        settings = affected[series.pk]
        proposal = Proposal(settings.least_effect, settings.muted, settings.stale_after)
        trial = thresholds.dry_run(series, proposal, MAX_TRIED_POINTS)
        differing = tuple(change for change in trial.changes if change.effect != "kept")
        row = TriedSeries(series_head(series), trial.gone, trial.new, trial.kept, differing)
        result.append(row)
    return tuple(result)
