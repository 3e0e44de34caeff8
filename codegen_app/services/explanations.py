"""Why series moved: changes that were found and not yet explained, with what differs.

A change whose figures are of more points than when it was explained is explained again
(``detector.writer``): three points after a change say less of it than thirty.
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet

from codegen_app.models import Change
from codegen_app.services.detector import sides
from scheduler.text import one_line
from scheduler.track import causes
from scheduler.track.evidence import Cause

BATCH_SIZE = 50
# A statement of one text: an expression for each column of each row takes as long as explaining.
_UPDATE = """
UPDATE codegen_app_change AS change SET
    cause = new.cause, rule = new.rule, explanation = new.explanation,
    explained_at = clock_timestamp()
FROM json_to_recordset(%s::json) AS new(id bigint, cause text, rule text, explanation jsonb)
WHERE change.id = new.id
"""
log = logging.getLogger(__name__)


def unexplained_changes() -> QuerySet[Change]:
    """Changes whose cause nobody has looked for."""
    return Change.objects.filter(explained_at=None, withdrawn_at=None)


@transaction.atomic
def explain() -> int:
    """Explain some of the changes that wait; how many (0: none that nobody else explains)."""
    rows = list(
        unexplained_changes()
        .select_for_update(skip_locked=True, of=("self",))
        .select_related("series")
        .order_by("pk")[:BATCH_SIZE]
    )
    if not rows:
        return 0
    found = sides.change_sides(rows)
    new = [_columns(row, _explanation(row, found.get(row.pk))) for row in rows]
    with connection.cursor() as cursor:
        cursor.execute(_UPDATE, [json.dumps(new)])
    return len(rows)


def _explanation(row: Change, of: sides.Sides | None) -> dict[str, Any]:
    """The explanation as JSON. One that fails by a fault of its own says so, and holds up no
    other."""
    if of is None:
        return _without_cause(row, "its points are no longer here")
    try:
        return asdict(causes.explain(of.before, of.after))
    except Exception as error:
        log.exception("change %d could not be explained", row.pk)
        return _without_cause(row, f"looking for the cause failed: {one_line(str(error))[:300]}")


def _without_cause(row: Change, reason: str) -> dict[str, Any]:
    return {
        "cause": Cause.UNKNOWN,
        "rule": "not explained",
        "reasons": [reason],
        "candidates": [],
        "next_step": "",
        "feeds_noise_floor": False,
        "ratio": row.ratio,
        "differences": [],
    }


def _columns(row: Change, explanation: dict[str, Any]) -> dict[str, Any]:
    found = {name: str(explanation[name]) for name in ("cause", "rule")}
    return {"id": row.pk, **found, "explanation": explanation}
