"""Series of any kind through the whole site: what is found is what the detector finds in the
values, and every page, picture and answer is whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree

import pytest
from django.contrib.auth.models import User
from django.test import Client
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from codegen_app.tracking.models import (
    Alert,
    AlertEvent,
    Change,
    Conditions,
    Datum,
    MeasurementRequest,
    Remeasurement,
    Revision,
    Series,
)
from codegen_app.tracking.models.series import Source
from codegen_app.tracking.services import alert_pipeline, point_storage
from scheduler.results.points.model import Point, RevisionKey, SeriesKey
from scheduler.stats import changes

pytestmark = pytest.mark.django_db
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
LEAST, MOST = 1e-150, 1e150
LEVELS = st.one_of(
    st.sampled_from([0.0, LEAST, MOST, -LEAST, -MOST, 1.0, -1.0]), st.floats(-1e3, 1e3)
).filter(lambda value: value == 0 or abs(value) >= LEAST)


@st.composite
def any_series(draw: st.DrawFn) -> list[float]:
    """One to three constant levels of any sign and size, some values not like the rest."""
    found: list[float] = []
    for _ in range(draw(st.integers(1, 3))):
        found += [draw(LEVELS)] * draw(st.sampled_from([1, 5, 14, 14]))
    for place in draw(st.sets(st.integers(0, len(found) - 1), max_size=3)):
        found[place] = draw(LEVELS)
    return found


def points(values: Sequence[float]) -> list[Point]:
    key = SeriesKey("mm", {}, "sm_90", "NVIDIA H200", "nvcc", "drift", "")
    return [
        Point(key, value, BEGIN + DAY * n, RevisionKey(f"r{n}", BEGIN + DAY * n))
        for n, value in enumerate(values)
    ]


def strictly(answer: Any) -> Any:
    """JSON without NaN and Infinity, which are none."""
    assert answer.status_code == 200

    def fails(text: str) -> None:
        raise AssertionError(f"{text} is no JSON")

    return json.loads(answer.content, parse_constant=fails)


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(values=any_series())
@example([LEAST] * 14 + [MOST] * 14)
@example([MOST] * 14 + [LEAST] * 14)
@example([-1.0, 0.0] + [1.0, 1.001] * 10 + [-2.0] + [3.0, 3.01] * 10)
@pytest.mark.full
def test_every_series_is_read_whole_and_compared_as_far_as_ratios_go(
    client: Client, values: list[float]
) -> None:
    user, _ = User.objects.get_or_create(username="ada", is_superuser=True)
    client.force_login(user)
    requests = (MeasurementRequest, Remeasurement)  # of suspected steps
    for model in (*requests, AlertEvent, Change, Alert, Datum, Series, Revision, Conditions):
        model.objects.all().delete()
    point_storage.store(points(values), Source.API)
    alert_pipeline.process_pending()
    positive = [(n, value) for n, value in enumerate(values) if value > 0]
    expected = [
        (f"r{positive[one.index][0]}", pytest.approx(one.ratio, rel=1e-6), one.n_before)
        for _, one in changes.find_changes([value for _, value in positive])
    ]
    live = Change.objects.filter(withdrawn_at=None).select_related("revision").order_by("at")
    assert [(one.revision.name, one.ratio, one.n_before) for one in live] == expected

    row = Series.objects.get()
    assert (row.points, row.not_positive) == (len(values), len(values) - len(positive))
    address = row.get_absolute_url()
    page = strictly(client.get(f"{address}.json"))
    assert page["head"]["not_positive"] == row.not_positive
    assert page["latest"]["value"] == values[-1]
    columns = strictly(client.get(f"{address}/points.json"))["series"][0]["columns"]
    assert columns["value"] == pytest.approx(values, rel=1e-6)
    strictly(client.get(f"{address}/thresholds.json?try=1"))
    strictly(client.get("/series.json"))
    strictly(client.get("/alerts.json"))
    for change in live:
        strictly(client.get(f"{change.get_absolute_url()}.json"))
    for place in (address, f"{address}/thresholds", "/series", "/alerts"):
        html = client.get(place).content.decode()
        assert ("at or below 0" in html) is (row.not_positive > 0 and address in place)
    for picture in (f"{address}.svg", f"{address}/badge.svg"):
        text = client.get(picture).content.decode()
        ElementTree.fromstring(text)
        assert "nan" not in text, picture
        assert "inf" not in text.replace("insufficient", "").replace("info", ""), picture
