"""Explaining changes: for each change without a cause, what differs across it.

A change whose figures cover more points than when it was explained is explained again
(``detector.writer``): three points after a change say less about it than thirty.
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet

from codegen_app.tracking.detector import sides
from codegen_app.tracking.models import Change
from scheduler.text import one_line
from scheduler.track import causes
from scheduler.track.evidence import Cause

BATCH_SIZE = 50
# One statement with one JSON parameter: an expression for each column of each row would take as
# long as explaining.
_UPDATE = """
UPDATE codegen_app_change AS change SET
    cause = new.cause, rule = new.rule, explanation = new.explanation,
    explained_at = clock_timestamp()
FROM json_to_recordset(%s::json) AS new(id bigint, cause text, rule text, explanation jsonb)
WHERE change.id = new.id
"""
log = logging.getLogger(__name__)


def unexplained_changes() -> QuerySet[Change]:
    """Return changes without an explanation."""
    return Change.objects.filter(explained_at=None, withdrawn_at=None)


@transaction.atomic
def explain() -> int:
    """Explain some waiting changes; return how many (0: none waits, or others explain them). An
    unexpected error is recorded in the change's explanation, and does not block others."""
    rows = list(
        unexplained_changes()
        .select_for_update(skip_locked=True, of=("self",))
        .select_related("series")
        .order_by("pk")[:BATCH_SIZE]
    )
    if not rows:
        return 0
    sides_by_change = sides.change_sides(rows)
    new = []
    for row in rows:
        explanation: dict[str, Any] = {
            "cause": Cause.UNKNOWN,
            "rule": "not explained",
            "reasons": ["its points were deleted"],
            "candidates": [],
            "next_step": "",
            "feeds_noise_floor": False,
            "ratio": row.ratio,
            "differences": [],
        }
        if row.pk in sides_by_change:
            try:
                explanation = asdict(causes.explain(*sides_by_change[row.pk]))
            except Exception as error:
                log.exception("change %d could not be explained", row.pk)
                reason = f"finding the cause failed: {one_line(str(error))[:300]}"
                explanation["reasons"] = [reason]
        cause, rule = str(explanation["cause"]), str(explanation["rule"])
        new.append({"id": row.pk, "cause": cause, "rule": rule, "explanation": explanation})
    with connection.cursor() as cursor:
        cursor.execute(_UPDATE, [json.dumps(new)])
    return len(rows)
