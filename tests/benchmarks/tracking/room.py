"""Bytes of a point with its indexes, which grow as points arrive: those that are built at once are
smaller."""

from __future__ import annotations

import psycopg

from tests.benchmarks.tracking.goals import Figure
from tests.benchmarks.tracking.server import Place
from tests.support.room import COLUMNS, bytes_a_point

_GOAL = 200
_POINTS = 500_000


def measured(place: Place) -> Figure:
    """The first points of the database, stored again in their order; samples are not counted."""
    points = f"SELECT {COLUMNS} FROM codegen_app_datum ORDER BY id LIMIT {_POINTS}"
    with psycopg.connect(place.url) as connection, connection.cursor() as cursor:
        found = bytes_a_point(cursor, points)
    return Figure("a point with its indexes", found, "bytes", _POINTS, _GOAL)
