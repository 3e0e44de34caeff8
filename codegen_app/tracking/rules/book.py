"""Changes of the rules by patterns: added, edited, moved, removed; one person at a time.

Each change has the series matched again (``resolution``), and is in the audit log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, User
from django.db import transaction
from django.utils import timezone

from codegen_app.accounts import audit, permissions
from codegen_app.tracking.models import PatternRule
from codegen_app.tracking.rules import resolution
from scheduler.errors import UserError
from scheduler.track.patterns import FACT_NAMES, SeriesPatterns

MAX_RULES = 1000


@dataclass(frozen=True)
class RuleDraft:
    """A rule as proposed. ``position`` counts from 1, None for the end of the list;
    ``replaces`` is the rule that it is an edited version of."""

    patterns: SeriesPatterns = field(default_factory=SeriesPatterns)
    sets_thresholds: bool = False
    least_effect: float | None = None
    muted: bool = False
    stale_after: timedelta | None = None
    sets_owner: bool = False
    owner: User | None = None
    position: int | None = None
    replaces: PatternRule | None = None

    def row(self, **columns: Any) -> PatternRule:
        """Return it as a row, not stored. Raises ``UserError`` if it decides nothing, or its owner
        may not triage."""
        if not (self.sets_thresholds or self.sets_owner):
            raise UserError("select what the rule decides: thresholds, the owner, or both")
        if self.owner is not None and self.sets_owner:
            check_owner(self.owner)
        facts = {name: list(getattr(self.patterns, name)) for name in FACT_NAMES}
        thresholds = self.sets_thresholds
        return PatternRule(
            **facts,
            sets_thresholds=thresholds,
            least_effect=self.least_effect if thresholds else None,
            muted=self.muted and thresholds,
            stale_after=self.stale_after if thresholds else None,
            sets_owner=self.sets_owner,
            owner=self.owner if self.sets_owner else None,
            **columns,
        )


def check_owner(person: User) -> None:
    """Raise ``UserError`` for an account that no alert can be assigned to."""
    if not (person.is_active and person.has_perm(permissions.TRIAGE)):
        raise UserError(
            f"owner: {person.get_username()} has no permission to triage alerts: select another"
            " user, or grant it"
        )


@transaction.atomic
def save(draft: RuleDraft, reason: str, by: AbstractBaseUser) -> PatternRule:
    """Add a rule, or replace the one that the draft edits.

    Raises ``UserError`` without a reason, for an invalid draft, for a rule that another user
    edited or removed meanwhile, and if there are too many rules.
    """
    resolution.lock_rules()
    rules = resolution.standing_rules()
    replaced = draft.replaces
    if replaced is not None and replaced not in rules:
        raise UserError(f"{replaced} was edited or removed meanwhile: open the list of rules")
    if replaced is None and len(rules) >= MAX_RULES:
        raise UserError(f"there are {MAX_RULES} rules, which is the limit: remove some")
    rule = draft.row(
        position=0,
        reason=checked_reason(reason),
        changed_by_id=audit.actor_id(by),
        import_name=replaced.import_name if replaced else "",
    )
    place = ordered(rules, rule, draft)
    if replaced is not None:
        mark_removed([replaced])
    rule.save()
    store_order(place)
    resolution.restart_sweep()
    audit.record(by, "edit rule" if replaced else "add rule", rule, rule.reason)
    return rule


@transaction.atomic
def move(rule: PatternRule, position: int, by: AbstractBaseUser) -> bool:
    """Move a rule to another place of the list, counted from 1; return False if it is there.

    Raises ``UserError`` for a rule that was edited or removed meanwhile.
    """
    resolution.lock_rules()
    rules = resolution.standing_rules()
    if rule not in rules:
        raise UserError("the rule was edited or removed meanwhile: open the list of rules")
    before = [row.pk for row in rules]
    rule = rules.pop(rules.index(rule))  # as it is now: others may have moved it meanwhile
    rules.insert(max(0, position - 1), rule)
    if [row.pk for row in rules] == before:
        return False
    store_order(rules)
    resolution.restart_sweep()
    audit.record(by, "move rule", rule)
    return True


@transaction.atomic
def remove(rule: PatternRule, reason: str, by: AbstractBaseUser) -> bool:
    """Remove a rule; return False if it was removed already. Raises ``UserError`` without a
    reason."""
    reason = checked_reason(reason)
    resolution.lock_rules()
    rules = resolution.standing_rules()
    if rule not in rules:
        return False
    rules.remove(rule)
    mark_removed([rule])
    store_order(rules)
    resolution.restart_sweep()
    audit.record(by, "remove rule", rule, reason)
    return True


def ordered(rules: Sequence[PatternRule], rule: PatternRule, draft: RuleDraft) -> list[PatternRule]:
    """Return the rules with a draft's row at its place, and without the rule that it replaces."""
    replaced = draft.replaces
    others = [row for row in rules if replaced is None or row.pk != replaced.pk]
    place = len(others) if draft.position is None else max(0, draft.position - 1)
    others.insert(place, rule)
    return others


def store_order(rules: Sequence[PatternRule]) -> None:
    """Number the rules from 1, in the caller's transaction, which has locked them."""
    moved = []
    for position, row in enumerate(rules, start=1):
        if row.position != position:
            row.position = position
            moved.append(row)
    PatternRule.objects.bulk_update(moved, ["position"], batch_size=500)


def checked_reason(text: str) -> str:
    """Return the reason. Raises ``UserError`` without one."""
    if not text.strip():
        raise UserError("enter a reason")
    return text.strip()[:500]


def mark_removed(rules: Sequence[PatternRule]) -> None:
    """Take rules out of effect, in the caller's transaction, which has locked them."""
    keys = [row.pk for row in rules]
    PatternRule.objects.filter(pk__in=keys).update(removed_at=timezone.now())
