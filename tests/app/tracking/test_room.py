"""Points take little room in any order of arrival."""

from __future__ import annotations

import pytest
from django.db import connection

from tests.support.room import bytes_a_point

MAX_BYTES = 200
POINTS = 100_000
# A batch of each series' next point after the other, in an order of its own.
_BATCHES = """
SELECT series, timestamptz '2026-01-01' + batch * interval '30 min',
    timestamptz '2026-01-01' + batch * interval '30 min' + series * interval '1 ms',
    100.5, 99.5, 101.5, 20, batch, series * 7 + batch / 50, batch, 'api'
FROM generate_series(1, {batches}) AS batch, generate_series(1, {series}) AS series
ORDER BY batch, md5(series || ' ' || {order})
"""


@pytest.mark.django_db
@pytest.mark.parametrize(("series", "order"), [(100, "'the same'"), (1_000, "batch")])
def test_a_point_takes_at_most_200_bytes_with_its_indexes(series: int, order: str) -> None:
    batches = _BATCHES.format(batches=POINTS // series, series=series, order=order)
    with connection.cursor() as cursor:
        assert bytes_a_point(cursor, batches) <= MAX_BYTES
