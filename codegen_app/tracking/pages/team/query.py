"""The open alerts and the series of one person, and the team's budgets."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User

from codegen_app.tracking.models import OPEN_ALERT_STATES, Alert, Budget, Series
from codegen_app.tracking.pages.series.columns import SeriesRow
from codegen_app.tracking.pages.series.query import series_rows
from codegen_app.tracking.queries.alert_rows import AlertRow, alert_rows, triagers
from codegen_app.tracking.queries.budget_values import BudgetRow, budget_rows

MAX_ALERTS = 50
MAX_SERIES = 50


@dataclass(frozen=True)
class TeamPage:
    """``person`` is a user name, "" if no user is signed in and none is selected; ``unknown``: the
    address names a user without an account. The newest alerts and the series with the latest
    points are listed, of ``n_alerts`` and ``n_series``."""

    person: str
    unknown: bool
    people: tuple[str, ...]
    alerts: tuple[AlertRow, ...]
    n_alerts: int
    series: tuple[SeriesRow, ...]
    n_series: int
    budgets: tuple[BudgetRow, ...]

    @property
    def n_missed(self) -> int:
        """The number of budgets that are not met."""
        return sum(budget.met is False for budget in self.budgets)


@dataclass(frozen=True)
class BudgetPage:
    """One budget."""

    budget: BudgetRow


def team_page(person: str) -> TeamPage:
    """Return the page of a user by name, "" for none (16 queries)."""
    user = User.objects.filter(username=person).first()
    key = user.pk if user is not None else 0
    alerts = Alert.objects.filter(assignee=key, state__in=OPEN_ALERT_STATES)
    related = alerts.select_related("revision", "series", "assignee").order_by("-pk")
    owned = Series.objects.filter(owner_rule__owner=key, last_at__isnull=False)
    names = {name for name, able in triagers().values() if able} | {person}
    return TeamPage(
        person=person,
        unknown=bool(person) and user is None,
        people=tuple(sorted(names - {""})),
        alerts=alert_rows(related[:MAX_ALERTS]),
        n_alerts=alerts.count(),
        series=series_rows(list(owned.order_by("-last_at", "-pk")[:MAX_SERIES])),
        n_series=owned.count(),
        budgets=budget_rows(Budget.objects.select_related("changed_by")),
    )


def budget_page(pk: int) -> BudgetPage:
    """Return a budget by number (6 queries). Raises ``Budget.DoesNotExist``."""
    [row] = budget_rows([Budget.objects.select_related("changed_by").get(pk=pk)])
    return BudgetPage(row)
