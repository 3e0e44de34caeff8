"""Owners of series become the assignees of their alerts, once, when an alert is raised."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.models import User

from codegen_app.accounts import permissions
from codegen_app.tracking.alerting.events import change_alert, record_event
from codegen_app.tracking.models import Alert, EventKind, PatternRule, Series


def assign_owners(raised: Sequence[tuple[Alert, int]]) -> None:
    """Assign new alerts, each with the key of its worst series, to the owners of these series (1
    query, and one event for each alert). An alert that has an assignee keeps it."""
    keys = {series for _, series in raised}
    rows = Series.objects.filter(pk__in=keys, owner_rule__owner__isnull=False)
    rules = {row.pk: row.owner_rule for row in rows.select_related("owner_rule__owner")}
    able: dict[int, bool] = {}
    for alert, series in raised:
        rule = rules.get(series)
        if rule is None or rule.owner is None or alert.assignee_id is not None:
            continue
        owner = rule.owner
        if owner.pk not in able:
            able[owner.pk] = owner.is_active and owner.has_perm(permissions.TRIAGE)
        _assign_owner(alert, rule, owner, is_able=able[owner.pk])


def _assign_owner(alert: Alert, rule: PatternRule, owner: User, *, is_able: bool) -> None:
    """Record by which rule an alert is assigned, or why it is not."""
    if is_able:
        columns = {"assignee": owner.pk}
        change_alert(alert, EventKind.ASSIGNEE, columns, note=f"owner of the series by {rule}")
    else:
        name = owner.get_username()
        note = f"not assigned to {name}, the owner by {rule}: may not triage alerts any more"
        record_event(alert, EventKind.NOTE, note=note)
