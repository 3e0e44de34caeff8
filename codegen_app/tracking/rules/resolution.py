"""Which rules apply to which series: found when a series is new or its latest point comes from
another repository or path, and for all series after the rules changed.

A new series is matched by the detector's run that checks its first points, before these are
judged. After a change of the rules, ``apply_rules`` goes through all series in steps; the row of
``RuleSweep`` says how far, so that another worker continues where a killed one ended.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from django.db import connection, transaction

from codegen_app.tracking.models import VALID, PatternRule, RuleSweep, Series
from codegen_app.tracking.rules.settings import RULES_OF_SERIES, SeriesSettings, rule_settings
from codegen_app.workers import queue
from scheduler.track.patterns import SeriesFacts, SeriesPatterns

MAX_SERIES = 200
"""Series of one step: adding points to one of them waits until the step ends."""

_LATEST_ORIGINS = f"""
SELECT asked.id, revision.repository, COALESCE(conditions.facts->>'path', '')
FROM unnest(%s::bigint[]) AS asked(id)
CROSS JOIN LATERAL (
    SELECT revision_id, conditions_id FROM codegen_app_datum AS datum
    WHERE series_id = asked.id AND is_trunk AND {VALID.format(datum="datum")}
    ORDER BY at DESC, id DESC LIMIT 1
) AS latest
JOIN codegen_app_revision AS revision ON revision.id = latest.revision_id
JOIN codegen_app_conditions AS conditions ON conditions.id = latest.conditions_id
"""  # noqa: S608 - our own names
_STORE = """
UPDATE codegen_app_series AS series SET
    repository = new.repository, path = new.path, needs_rules = FALSE,
    pattern_rule_id = new.pattern_rule_id, owner_rule_id = new.owner_rule_id,
    unchecked_from = LEAST(series.unchecked_from, new.recheck_from)
FROM json_to_recordset(%s::json) AS new(id bigint, repository text, path text,
    pattern_rule_id bigint, owner_rule_id bigint, recheck_from timestamptz)
WHERE series.id = new.id
"""
_REQUEUE_LAST_CHANGES = """
UPDATE codegen_app_change SET raised_at = NULL WHERE alert_id IS NULL AND id IN (
    SELECT last.id FROM unnest(%s::bigint[]) AS asked(id)
    CROSS JOIN LATERAL (
        SELECT id FROM codegen_app_change
        WHERE series_id = asked.id AND withdrawn_at IS NULL ORDER BY at DESC, id DESC LIMIT 1
    ) AS last
)
"""


def standing_rules() -> list[PatternRule]:
    """Return the rules in their order, with their owners."""
    rows = PatternRule.objects.filter(removed_at=None).select_related("owner")
    return list(rows.order_by("position", "pk"))


class RuleMatcher:
    """The first rules that match. Many series are of one file: the rules of a path are found once,
    since an imported CODEOWNERS file has hundreds."""

    def __init__(self, rules: Iterable[PatternRule]) -> None:
        self._rules = [(rule, rule.patterns) for rule in rules]
        self._rules_of_path: dict[str, list[tuple[PatternRule, SeriesPatterns]]] = {}

    def match(self, facts: SeriesFacts) -> tuple[PatternRule | None, PatternRule | None]:
        """Return the rules that decide thresholds and owner of a series."""
        if facts.path not in self._rules_of_path:
            self._rules_of_path[facts.path] = [
                row for row in self._rules if row[1].match_path(facts.path)
            ]
        thresholds, owner = None, None
        for rule, patterns in self._rules_of_path[facts.path]:
            is_needed = (rule.sets_thresholds and not thresholds) or (rule.sets_owner and not owner)
            if is_needed and patterns.match_names(facts):
                thresholds = thresholds or (rule if rule.sets_thresholds else None)
                owner = owner or (rule if rule.sets_owner else None)
        return thresholds, owner


def series_facts(series: Series) -> SeriesFacts:
    return SeriesFacts(
        series.repository, series.problem, series.device_name, series.metric, series.path
    )


def resolve(rows: Sequence[Series]) -> None:
    """Find and store the rules of series that the transaction has locked, read with
    ``RULES_OF_SERIES`` (3 queries, one more if some are unmuted).

    The rows are updated, too. A series whose thresholds differ from before is to be checked again:
    from its beginning if the minimum effect differs; and an unmuted one raises an alert for the
    change that began its current level.
    """
    matcher = RuleMatcher(standing_rules())
    origins = _latest_origins([row.pk for row in rows])
    stored, unmuted = [], []
    for row in rows:
        before = row.repository, row.path, row.pattern_rule_id, row.owner_rule_id
        row.repository, row.path = origins.get(row.pk, (row.repository, row.path))
        thresholds, owner = matcher.match(series_facts(row))
        old, new = rule_settings(row.pattern_rule), rule_settings(thresholds)
        row.pattern_rule, row.owner_rule = thresholds, owner
        after = row.repository, row.path, row.pattern_rule_id, row.owner_rule_id
        if not row.needs_rules and before == after:
            continue
        row.needs_rules = False
        recheck_from = None
        if not hasattr(row, "rule"):  # its own thresholds would hold in any case
            recheck_from = _recheck_from(row, old, new)
            if old.muted and not new.muted:
                unmuted.append(row.pk)
        if recheck_from is not None:
            waiting = row.unchecked_from or recheck_from
            row.unchecked_from = min(waiting, recheck_from)
        stored.append(
            {
                "id": row.pk,
                "repository": row.repository,
                "path": row.path,
                "pattern_rule_id": row.pattern_rule_id,
                "owner_rule_id": row.owner_rule_id,
                "recheck_from": recheck_from.isoformat() if recheck_from else None,
            }
        )
    if stored:
        with connection.cursor() as cursor:
            cursor.execute(_STORE, [json.dumps(stored)])
    requeue_last_changes(unmuted)


def requeue_last_changes(series: Collection[int]) -> None:
    """Have alerts created for the changes that began the current levels of unmuted series."""
    if series:
        with connection.cursor() as cursor:
            cursor.execute(_REQUEUE_LAST_CHANGES, [list(series)])


def restart_sweep() -> None:
    """Have all series matched with the changed rules, in the caller's transaction, which has locked
    them by ``lock_rules``."""
    RuleSweep.objects.update(done_to=0)
    queue.notify(queue.Kind.DETECT)


def lock_rules() -> None:
    """Wait for other changes of rules, and keep them out until the end of the transaction."""
    RuleSweep.objects.get_or_create(pk=1)
    RuleSweep.objects.select_for_update().get(pk=1)


@transaction.atomic
def apply_rules() -> int:
    """Match the next series with the rules since these changed; return how many (0: all are, or
    another worker is at it)."""
    unfinished = RuleSweep.objects.filter(done_to__isnull=False)
    sweep = unfinished.select_for_update(skip_locked=True).first()
    if sweep is None:
        return 0
    rows = list(
        Series.objects.filter(pk__gt=sweep.done_to)
        .select_related(*RULES_OF_SERIES)
        .defer("sizes")
        .select_for_update(of=("self",))
        .order_by("pk")[:MAX_SERIES]
    )
    if rows:
        resolve(rows)
        sweep.done_to = rows[-1].pk
    else:
        sweep.done_to = None
        PatternRule.objects.filter(removed_at__isnull=False).delete()
    sweep.save(update_fields=["done_to"])
    return max(1, len(rows))


def has_unapplied_rules() -> bool:
    """Return whether rules changed and some series were not matched since."""
    return RuleSweep.objects.filter(done_to__isnull=False).exists()


def _latest_origins(series: Sequence[int]) -> dict[int, tuple[str, str]]:
    """Return repository and path of the latest valid point of the trunk of each series."""
    with connection.cursor() as cursor:
        cursor.execute(_LATEST_ORIGINS, [list(series)])
        return {pk: (repository, path) for pk, repository, path in cursor.fetchall()}


def _recheck_from(row: Series, old: SeriesSettings, new: SeriesSettings) -> datetime | None:
    """Return from where on the detector is to check a series under new settings; None: nowhere. The
    time after which data are missing is computed with any point."""
    if old.least_effect != new.least_effect:
        return row.first_at
    return row.last_at if old.stale_after != new.stale_after else None
