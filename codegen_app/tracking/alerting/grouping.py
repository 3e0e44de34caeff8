"""Which alert a change joins: one of the same kind, repository and class of causes, whose window
overlaps the change's; else a new one. Changes are those of trunks.

What was old when it was found is history. It joins open alerts and history; what is new does not
join history, since that sends no notification.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F, Q

from codegen_app.tracking.alerting.events import was_closed_by_kiln
from codegen_app.tracking.alerting.windows import (
    WINDOW_COLUMNS,
    AlertGroups,
    GroupedAlert,
    Window,
    alert_window,
    cause_class,
    change_window,
    shared_window,
    window_of,
)
from codegen_app.tracking.models import (
    OPEN_ALERT_STATES,
    Alert,
    AlertKind,
    AlertState,
    CauseClass,
    Change,
    Revision,
    Series,
)

_OPEN = {str(state) for state in OPEN_ALERT_STATES}


@dataclass
class Growth:
    """The series that an alert did not have before: by changes that were new when they were found,
    and by ``old`` ones. Both are 0 if its changes only moved."""

    new: int = 0
    old: int = 0


@dataclass
class Joined:
    """The alerts that changes joined, by key, and the classes of their causes; the first change of
    those that are new; and how the others grew."""

    alerts: dict[int, Alert] = field(default_factory=dict)
    classes: dict[int, CauseClass] = field(default_factory=dict)
    created: dict[int, Change] = field(default_factory=dict)
    growth: dict[int, Growth] = field(default_factory=dict)


def is_old(change: Change) -> bool:
    """Return whether a change was old when it was found."""
    return was_old(change.series, change.shown_at or change.at, change.found_at)


def was_old(series: Series, shown_at: datetime, found_at: datetime) -> bool:
    """Return whether something was found more than ``KILN_HISTORY_DAYS`` after the point that
    showed it. A generated history shows what alerts look like at any age."""
    if not settings.HISTORY_DAYS or series.is_generated:
        return False
    return found_at - shown_at > timedelta(days=settings.HISTORY_DAYS)


def candidates(changes: Collection[Change]) -> set[int]:
    """Return the keys of the alerts that these changes may join (1 query)."""
    if not changes:
        return set()
    windows = [change_window(change) for change in changes]
    begin, end = min(window.begin for window in windows), max(window.at for window in windows)
    states = [*OPEN_ALERT_STATES, AlertState.INVALID]
    if any(map(is_old, changes)):
        states.append(AlertState.HISTORY)
    begins = Q(since__lt=end) | Q(Q(since=None) | Q(since__gte=F("at")), at__lte=end)
    overlaps = begins & Q(at__gt=begin, state__in=states)
    exact = Q(revision__in={window.bad for window in windows})
    rows = Alert.objects.filter(overlaps | exact, revision__isnull=False)
    return set(rows.values_list("pk", flat=True))


def join_alerts(
    joining: Sequence[Change], removed: Collection[Change], alerts: Mapping[int, Alert]
) -> Joined:
    """Set the alert of each of these changes: one of ``alerts``, which are locked, or a new one.

    ``removed`` are changes that leave their alerts. A change that later points moved is a withdrawn
    one and a new one of the same series: it stays in its alert if that has no other changes.
    """
    joined = Joined()
    if not joining:
        return joined
    groups, by_key = _groups(alerts, removed)
    moved = {(row.series_id, row.worse): by_key.get(row.alert_id or 0) for row in removed}
    chosen: list[tuple[Change, GroupedAlert]] = []
    for row in sorted(joining, key=lambda row: (row.at, row.pk)):
        kind = AlertKind.REGRESSION if row.worse else AlertKind.IMPROVEMENT
        group, window = (str(kind), row.revision.repository), change_window(row)
        cause, old = cause_class(row.cause), is_old(row)
        target = groups.find(group, window, cause, is_old=old)
        if target is None:
            before = moved.get((row.series_id, row.worse))
            target = before if before is not None and before.window is None else None
        if target is None:
            state = AlertState.HISTORY if old else AlertState.NEW
            target = GroupedAlert(Alert(kind=group[0], state=state.value), window, is_open=True)
            groups.add(group, target)
        target.admit(window, cause)
        chosen.append((row, target))
    created = _create([target for _, target in chosen if target.alert.pk is None], joining)
    for row, target in chosen:
        row.alert = target.alert
        key = target.alert.pk
        joined.alerts[key] = target.alert
        joined.classes[key] = target.cause_class
        if key in created:
            joined.created.setdefault(key, row)
    joined.growth = _growth(chosen, joined.alerts.keys() - created)
    return joined


def _create(targets: Sequence[GroupedAlert], joining: Sequence[Change]) -> set[int]:
    """Create new alerts, each with its window; return their keys (2 queries)."""
    revisions = {row.revision_id: row.revision for row in joining}
    unsaved = {id(target): target for target in targets}.values()
    bad = {target.window.bad for target in unsaved if target.window is not None}
    if missing := bad - revisions.keys():
        revisions |= Revision.objects.in_bulk(missing)
    for target in unsaved:
        alert, window = target.alert, target.window
        assert window is not None
        alert.revision, alert.at = revisions[window.bad], window.at
        alert.good_revision_id, alert.since = window.good, window.since
        alert.cause_class = target.cause_class.value
    created = Alert.objects.bulk_create([target.alert for target in unsaved])
    return {alert.pk for alert in created}


def _groups(
    alerts: Mapping[int, Alert], removed: Collection[Change]
) -> tuple[AlertGroups, dict[int, GroupedAlert]]:
    """Return the alerts that changes may join, also by key (2 queries). An alert that was
    closed is joined by changes of its own revision only."""
    reduced = {row.alert_id for row in removed} & alerts.keys()
    emptied = {key for key, alert in alerts.items() if alert.state == AlertState.INVALID}
    windows: dict[int | None, list[Window]] = defaultdict(list)
    live = Change.objects.filter(alert__in=reduced | emptied, withdrawn_at=None)
    live = live.exclude(pk__in=[row.pk for row in removed])
    for key, *columns in live.values_list("alert_id", *WINDOW_COLUMNS):
        windows[key].append(window_of(*columns))
    reopenable = was_closed_by_kiln(emptied)
    groups, by_key = AlertGroups(), {}
    for key, alert in alerts.items():
        if alert.revision is None:
            continue
        is_reduced = key in reduced or key in emptied
        window = shared_window(windows[key]) if is_reduced else alert_window(alert)
        is_open = alert.state in {*_OPEN, AlertState.HISTORY} or key in reopenable
        cause = CauseClass(alert.cause_class if window else CauseClass.UNKNOWN)
        by_key[key] = GroupedAlert(alert, window, is_open, cause)
        groups.add((alert.kind, alert.revision.repository), by_key[key])
    return groups, by_key


def _growth(
    chosen: Sequence[tuple[Change, GroupedAlert]], existing: Collection[int]
) -> dict[int, Growth]:
    """Return how the alerts that existed grew (1 query)."""
    if not existing:
        return {}
    of_these = Change.objects.filter(
        alert__in=existing, series__in={row.series_id for row, _ in chosen}
    )
    known = set(of_these.values_list("alert_id", "series_id"))
    growth = {key: Growth() for key in existing}
    for row, target in chosen:
        key = target.alert.pk
        if key in existing and (key, row.series_id) not in known:
            growth[key].old += is_old(row)
            growth[key].new += not is_old(row)
    return growth
