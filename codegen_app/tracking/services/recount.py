"""The columns of a series that summarise its points, counted again after points were removed or
marked. Its latest point may be another one, so that other rules apply."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db import connection

from codegen_app.tracking.models import VALID, Series
from codegen_app.tracking.services import detection

_COUNT = """
UPDATE codegen_app_series AS series SET
    points = trunk.points + branches.points, branch_points = branches.points,
    not_positive = trunk.not_positive, withdrawn = trunk.withdrawn,
    first_at = COALESCE(trunk.first_at, branches.first_at),
    last_at = COALESCE(trunk.last_at, branches.last_at),
    needs_rules = TRUE
FROM unnest(%s::bigint[]) AS asked(id)
CROSS JOIN LATERAL (
    SELECT count(*) AS points, min(at) AS first_at, max(at) AS last_at,
        count(*) FILTER (WHERE value <= 0 AND {valid}) AS not_positive,
        count(*) FILTER (WHERE NOT {valid}) AS withdrawn
    FROM codegen_app_datum AS datum WHERE datum.series_id = asked.id AND datum.is_trunk
) AS trunk
CROSS JOIN LATERAL (
    SELECT count(*) AS points, min(at) AS first_at, max(at) AS last_at
    FROM codegen_app_datum AS datum WHERE datum.series_id = asked.id AND NOT datum.is_trunk
) AS branches
WHERE series.id = asked.id
""".format(valid=VALID.format(datum="datum"))  # noqa: S608 - our own names


def recount(series: Iterable[int]) -> None:
    """Count the points of series, whose rows the transaction has locked."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [list(series)])


def recount_and_recheck(places: Iterable[tuple[Series, datetime]]) -> None:
    """Count the points of series again, and check them again: the points of the trunk changed from
    these places in the history on."""
    places = list(places)
    recount(series.pk for series, _ in places)
    for series, at in places:
        detection.recheck(series, at)
