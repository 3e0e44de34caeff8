"""The generated team in the database, with a rule and a budget for its series."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction

from codegen_app.tracking.models import BudgetStatistic, Revision, Source
from codegen_app.tracking.rules import book
from codegen_app.tracking.services import budgets, point_storage
from codegen_app.tracking.services.point_storage import StoreSummary
from scheduler.track.generated_label import LABEL
from scheduler.track.generated_team import DEVICE, KERNELS, REPOSITORY, team_points
from scheduler.track.patterns import SeriesPatterns

# Longer ago than three times the interval of the points, so that later ones are not missing.
_LAST_BEFORE = timedelta(days=12)
_DUE_AFTER = timedelta(days=60)
_LEAST_EFFECT = 0.02
_LIMIT_US = 250.0


@transaction.atomic
def store(owner: User, now: datetime) -> StoreSummary:
    """Add the team once: its points, a rule that gives its series to ``owner``, who may triage, and
    a budget."""
    if Revision.objects.filter(repository=REPOSITORY).exists():
        return StoreSummary(0, 0, 0)
    book.save(
        book.RuleDraft(
            SeriesPatterns(repository=(REPOSITORY,)),
            sets_thresholds=True,
            least_effect=_LEAST_EFFECT,
            sets_owner=True,
            owner=owner,
        ),
        f"{LABEL}: an example",
        owner,
    )
    budgets.save_budget(
        None,
        budgets.BudgetDraft(
            f"{LABEL}: attention on H200",
            SeriesPatterns(problem=(f"{KERNELS} *",), device=(DEVICE,)),
            BudgetStatistic.P50,
            _LIMIT_US,
            "µs",
            (now + _DUE_AFTER).date(),
        ),
        owner,
    )
    last = datetime.combine((now - _LAST_BEFORE).date(), datetime.min.time(), UTC)
    return point_storage.store(team_points(last), Source.GENERATED)
