"""The detector's results as rows: a change that is found again keeps its row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from django.db import connection
from django.utils import timezone

from codegen_app.tracking.detector.queries import DetectionInput
from codegen_app.tracking.detector.replay import DetectedChange
from codegen_app.tracking.detector.suspicion import SuspectedStep
from codegen_app.tracking.models import Change

_FIGURES = ("before", "after", "low", "high", "n_before", "n_after")
_WINDOW = ("previous_id", "good_revision_id", "since", "bad_revision_id", "until")
_UPDATED_COLUMNS = (*_FIGURES, *_WINDOW, "shown_at", "errors", "worse")
# One statement with one text: an expression per figure and row takes as long as the detector.
_UPDATE = """
UPDATE codegen_app_change AS change SET
    before = new.before, after = new.after, low = new.low, high = new.high,
    n_before = new.n_before, n_after = new.n_after, shown_at = new.shown_at,
    previous_id = new.previous_id, good_revision_id = new.good_revision_id, since = new.since,
    bad_revision_id = new.bad_revision_id, until = new.until, errors = new.errors,
    worse = new.worse,
    explained_at = NULL, raised_at = NULL
FROM json_to_recordset(%s::json) AS new(
    id bigint, before float8, after float8, low float8, high float8, n_before integer,
    n_after integer, shown_at timestamptz, previous_id bigint,
    good_revision_id bigint, since timestamptz, bad_revision_id bigint, until timestamptz,
    errors float8, worse boolean)
WHERE change.id = new.id
"""

# Checked points are done; if more wait, the next run continues from there.
_DONE = """
UPDATE codegen_app_series AS series SET
    unchecked_from = next.at,
    stale_at = CASE WHEN next.at IS NULL THEN done.stale_at ELSE series.stale_at END,
    suspected_ratio = CASE WHEN next.at IS NULL THEN done.ratio END,
    suspected_n = CASE WHEN next.at IS NULL THEN done.n ELSE 0 END,
    suspected_from = CASE WHEN next.at IS NULL THEN done.since END,
    suspicion_handled = series.suspicion_handled AND next.at IS NULL
        AND COALESCE(series.suspected_from = done.since, FALSE)
FROM unnest(%s::bigint[], %s::timestamptz[], %s::timestamptz[], %s::float8[], %s::smallint[],
    %s::timestamptz[]) AS done(id, upto, stale_at, ratio, n, since)
CROSS JOIN LATERAL (
    SELECT min(at) AS at FROM codegen_app_datum
    WHERE series_id = done.id AND is_trunk AND at > done.upto
) AS next
WHERE series.id = done.id
"""


class _Done(NamedTuple):
    """The columns of ``_DONE``."""

    series: int
    upto: datetime
    stale_at: datetime | None
    ratio: float | None
    n: int
    since: datetime | None


class Writer:
    """Collects the results of many series, and writes them in a few statements."""

    def __init__(self) -> None:
        self._new: list[Change] = []
        self._updated: list[Change] = []
        self._withdrawn: list[int] = []
        self._done: list[_Done] = []

    def add(
        self,
        series_input: DetectionInput,
        detected: Iterable[DetectedChange],
        updated: DetectedChange | None,
        stale_at: datetime | None,
        step: SuspectedStep | None,
    ) -> None:
        """Add the results of one series. ``updated`` are newer figures of its last change, ``step``
        is one that is suspected at its end."""
        series, upto = series_input.pending.series, series_input.pending.upto
        live = {row.datum_id: row for row in series_input.live}
        for change in detected:
            row = live.pop(change.datum_id, None)
            if row is None:
                figures = {name: getattr(change, name) for name in _UPDATED_COLUMNS}
                self._new.append(
                    Change(
                        series_id=series.pk,
                        datum_id=change.datum_id,
                        at=change.at,
                        revision_id=change.revision_id,
                        **figures,
                    )
                )
            elif _apply(row, change, _UPDATED_COLUMNS):
                self._updated.append(row)
        self._withdrawn += [row.pk for row in live.values() if (row.shown_at or row.at) <= upto]
        last = series_input.last
        if updated is not None and last is not None and _apply(last, updated, _FIGURES):
            self._updated.append(last)
        suspicion = (None, 0, None) if step is None else (step.ratio, step.n, step.since)
        self._done.append(_Done(series.pk, upto, stale_at, *suspicion))

    def write(self) -> int:
        """Write all results, in the transaction that has locked the series; return how many changes
        differ."""
        if self._withdrawn:  # first: a point begins one change at a time
            Change.objects.filter(pk__in=self._withdrawn).update(
                withdrawn_at=timezone.now(), raised_at=None
            )
        with connection.cursor() as cursor:
            if self._updated:
                names = ("id", *_UPDATED_COLUMNS)
                rows = [{name: getattr(row, name) for name in names} for row in self._updated]
                cursor.execute(_UPDATE, [json.dumps(rows, default=str)])
            if self._new:
                Change.objects.bulk_create(self._new, batch_size=1000)
            cursor.execute(_DONE, list(map(list, zip(*self._done, strict=True))))
        return len(self._withdrawn) + len(self._updated) + len(self._new)


def _apply(row: Change, detected: DetectedChange, columns: Sequence[str]) -> bool:
    """Copy the figures; return whether any differs. A change is then explained again."""
    if all(getattr(row, name) == getattr(detected, name) for name in columns):
        return False
    for name in columns:
        setattr(row, name, getattr(detected, name))
    row.explained_at = row.raised_at = None
    return True
