"""The generated history in the database: never taken for a measurement, and explained as rightly as
before it was stored."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from codegen_app.tracking.models import Datum, Revision, Series, Source
from codegen_app.tracking.services import generated_history
from scheduler.track.causes import explain
from scheduler.track.facts import point_of
from scheduler.track.generated import REVISIONS, GeneratedSeries, generate_history, sides_of
from scheduler.track.generated_label import LABEL
from scheduler.track.sides import Point

pytestmark = pytest.mark.django_db

GOAL = 0.95


def test_all_of_it_says_that_it_was_generated_and_it_is_stored_once() -> None:
    out = StringIO()
    call_command("generate_history", "--series", "3", stdout=out)
    assert f"{3 * REVISIONS} generated points in 3 series" in out.getvalue()
    call_command("generate_history", "--series", "3", stdout=out)
    assert "nothing was added" in out.getvalue()
    assert Datum.objects.count() == 3 * REVISIONS
    assert set(Datum.objects.values_list("source", flat=True)) == {Source.GENERATED}
    for series in Series.objects.all():
        assert series.is_generated
        assert series.problem.startswith(LABEL)
        assert series.device_name.startswith(LABEL)
        assert (series.points, series.own_problem) == (REVISIONS, None)
        assert series.unchecked_from == series.first_at, "a detector looks at it"
    assert all(one.repository.startswith(LABEL) for one in Revision.objects.all())
    call_command("generate_history", "--series", "4", stdout=out)
    assert Series.objects.count() == 4


def stored_points(history: GeneratedSeries) -> tuple[Point, ...]:
    row = Series.objects.get(digest=generated_history._key(history, 0).digest)
    same = {"target": row.target, "toolchain": row.toolchain, "device": row.device_name}
    data = Datum.objects.filter(series=row).order_by("at", "id")
    return tuple(
        point_of(
            datum.conditions.facts,
            value=datum.value,
            low=datum.low,
            high=datum.high,
            n=datum.n,
            revision=datum.revision.name,
            **same,
        )
        for datum in data.select_related("revision", "conditions")
    )


@pytest.mark.full
def test_changes_are_explained_from_the_rows() -> None:
    generated_history.store(generated_history.SERIES)
    right = total = 0
    for one in generate_history(generated_history.SERIES):
        stored = replace(one, points=stored_points(one))
        for injected in one.injected:
            said = explain(*sides_of(stored, injected))
            assert said.cause is explain(*sides_of(one, injected)).cause, "nothing was lost"
            right += said.cause is injected.cause
            total += 1
    assert total > 5 * generated_history.SERIES / 2
    assert right >= GOAL * total, f"{right} of {total}"


@pytest.mark.parametrize("arguments", [("--series", "0"), ("--seed", "-1")])
def test_a_mistake_is_one_line(arguments: tuple[str, str]) -> None:
    with pytest.raises(CommandError, match=arguments[0]):
        call_command("generate_history", *arguments)
