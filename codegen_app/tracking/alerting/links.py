"""Alerts of one cause: a new alert is linked to the alert that it repeats, or follows from.

A link goes to an alert without a link of its own. People create, change and remove links in
``triage``; a person's link stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection
from django.db.models import Q

from codegen_app.tracking.alerting.events import change_alert
from codegen_app.tracking.models import (
    Alert,
    AlertKind,
    AlertState,
    CauseClass,
    EventKind,
    Relation,
)

_Commit = tuple[str, str, bool, bool]
_SAME_COMMIT_NOTE = "same commit"
_DOWNSTREAM_NOTE = "the time of a model depends on its kernels"

# External series of a whole model (named like a graph here) that changed at a point; series of the
# model's own kernels on that device that changed in the same direction since the point before.
_DOWNSTREAM = """
SELECT DISTINCT model.alert_id, kernel.alert_id
FROM codegen_app_change AS kernel
JOIN codegen_app_series AS own ON own.id = kernel.series_id
JOIN codegen_app_templatenode AS node ON node.problem_id = own.own_problem_id
JOIN codegen_app_graph AS graph ON graph.id = node.graph_id
JOIN codegen_app_series AS whole ON whole.problem = graph.name AND whole.own_problem_id IS NULL
    AND whole.device_name = own.device_name
JOIN codegen_app_change AS model ON model.series_id = whole.id AND model.worse = kernel.worse
    AND model.alert_id <> kernel.alert_id AND kernel.at <= model.at
CROSS JOIN LATERAL (
    SELECT max(at) AS at FROM codegen_app_datum
    WHERE series_id = whole.id AND is_trunk AND at < model.at
) AS earlier
WHERE model.withdrawn_at IS NULL AND kernel.withdrawn_at IS NULL AND kernel.at > earlier.at
    AND (model.alert_id = ANY(%(new)s) OR kernel.alert_id = ANY(%(new)s))
    AND NOT EXISTS (
        SELECT 1 FROM codegen_app_change AS also
        JOIN codegen_app_series AS its ON its.id = also.series_id
        WHERE also.alert_id = model.alert_id AND also.withdrawn_at IS NULL
            AND (its.own_problem_id IS NOT NULL
                OR NOT EXISTS (SELECT 1 FROM codegen_app_graph WHERE name = its.problem))
    )
ORDER BY 1, 2
"""


def link_new(new: Sequence[Alert]) -> None:
    """Link new alerts, in the transaction that created them and has locked all links.

    The same commit on another branch is a duplicate of the first alert; a commit's improvements
    belong to its regressions. A whole model's series is downstream of its kernels'. History is
    linked to history only, and a change of the environment to no commit's.
    """
    if not new:
        return
    loaded = {alert.pk: alert for alert in new}
    of_commits = Q()
    for repository, name in {_commit(alert)[:2] for alert in new}:
        of_commits |= Q(revision__repository=repository, revision__name=name)
    by_commit: dict[_Commit, list[Alert]] = {}
    for row in Alert.objects.filter(of_commits).select_related("revision").order_by("pk"):
        by_commit.setdefault(_commit(row), []).append(loaded.get(row.pk, row))
    for alert in new:
        alike = by_commit[_commit(alert)]
        # A commit's alerts belong to its earliest regression, if any.
        first = min(alike, key=lambda other: (other.kind != AlertKind.REGRESSION, other.pk))
        for other in alike:
            if other.pk != first.pk and alert in (other, first):
                _link_to(other, Relation.DUPLICATE, first, _SAME_COMMIT_NOTE)
    with connection.cursor() as cursor:
        cursor.execute(_DOWNSTREAM, {"new": [alert.pk for alert in new]})
        pairs = cursor.fetchall()
    if missing := {key for pair in pairs for key in pair} - set(loaded):
        loaded |= Alert.objects.in_bulk(missing)
    for model, kernel in pairs:
        _link_to(loaded[model], Relation.DOWNSTREAM, loaded[kernel], _DOWNSTREAM_NOTE)


def _commit(alert: Alert) -> _Commit:
    assert alert.revision is not None
    is_history = alert.state == AlertState.HISTORY
    is_environment = alert.cause_class == CauseClass.ENVIRONMENT
    return alert.revision.repository, alert.revision.name, is_history, is_environment


def _link_to(alert: Alert, relation: Relation, other: Alert, note: str) -> None:
    """Link to an alert, or to the alert that it is linked to. Does nothing if there is a link, if a
    person decided on one, or if it would close a cycle."""
    root = other.duplicate_of or other.downstream_of or other
    decided = alert.events.filter(kind=EventKind.LINK)
    if alert.duplicate_of_id or alert.downstream_of_id or root.pk == alert.pk or decided.exists():
        return
    if root.duplicate_of_id or root.downstream_of_id:
        return
    change_alert(alert, EventKind.LINK, {relation.value: root.pk}, note=note)
    setattr(alert, relation.value, root)  # loaded: the alert's next events read it
    for follower in Alert.objects.filter(Q(duplicate_of=alert) | Q(downstream_of=alert)):
        is_duplicate = follower.duplicate_of_id == alert.pk
        existing = Relation.DUPLICATE if is_duplicate else Relation.DOWNSTREAM
        change_alert(follower, EventKind.LINK, {existing.value: root.pk}, note=note)
