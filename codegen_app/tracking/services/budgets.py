"""Budgets: limits for a statistic of many series, set by people."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date

from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction

from codegen_app.accounts import audit
from codegen_app.tracking.models import Budget, BudgetStatistic
from scheduler.errors import UserError
from scheduler.track.patterns import FACT_NAMES, SeriesPatterns

MAX_BUDGETS = 50


@dataclass(frozen=True)
class BudgetDraft:
    """A budget as entered; ``limit`` is in ``unit``."""

    name: str
    patterns: SeriesPatterns
    statistic: BudgetStatistic
    limit: float
    unit: str
    due: date | None = None


@transaction.atomic
def save_budget(row: Budget | None, draft: BudgetDraft, by: AbstractBaseUser) -> Budget:
    """Add a budget, or change an existing one.

    Raises ``UserError`` for a limit that is not above 0, a name that is taken, and too many
    budgets.
    """
    if not (math.isfinite(draft.limit) and draft.limit > 0):
        raise UserError("limit: must be above 0")
    is_new = row is None
    if row is None:
        if Budget.objects.count() >= MAX_BUDGETS:
            raise UserError(f"there are {MAX_BUDGETS} budgets, which is the limit: remove some")
        row = Budget()
    for name in FACT_NAMES:
        setattr(row, name, list(getattr(draft.patterns, name)))
    row.name, row.statistic, row.unit = draft.name, draft.statistic.value, draft.unit
    row.limit, row.due = draft.limit, draft.due
    row.changed_by_id = audit.actor_id(by)
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        raise UserError(f"name: there is a budget {draft.name} already") from None
    limit = f"{draft.statistic.label} of {draft.patterns}: {draft.limit:g} {draft.unit}".rstrip()
    audit.record(by, "add budget" if is_new else "change budget", row, limit)
    return row


@transaction.atomic
def remove_budget(row: Budget, by: AbstractBaseUser) -> None:
    audit.record(by, "remove budget", row)
    row.delete()
