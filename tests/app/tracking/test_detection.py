"""Changes in histories, their causes and alerts, as whoever sends points relies on them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codegen_app.tracking.alerting import creation, missing_data
from codegen_app.tracking.models import (
    Alert,
    AlertEvent,
    AlertKind,
    AlertState,
    Baseline,
    Change,
    Channel,
    ChannelKind,
    Conditions,
    Datum,
    Delivery,
    EventKind,
    Revision,
    Series,
    SeriesRule,
    Source,
)
from codegen_app.tracking.services import (
    alert_pipeline,
    detection,
    explanations,
    point_storage,
    thresholds,
)
from scheduler.results.points.model import Point, RevisionKey, SeriesKey
from tests.support.queries import assert_steady, queries_of

pytestmark = pytest.mark.django_db
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
LEVELS = [(100.0, 30), (110.0, 30)]


def facts(code: str = "a", **others: Any) -> dict[str, Any]:
    """All that is needed to say a cause."""
    known = {
        "driver": "580.95",
        "code_digest": code * 64,
        "source_digest": code * 64,
        "toolchain_version": "13.0",
    }
    return known | others


def values(levels: Sequence[tuple[float, int]], seed: int = 0, noise: float = 0.005) -> list[float]:
    rng = random.Random(seed)
    return [level * rng.gauss(1, noise) for level, count in levels for _ in range(count)]


def points(
    of: Sequence[float],
    problem: str = "mm",
    conditions: Any = None,
    runs: int = 1,
    branch: str = "",
    **key: Any,
) -> list[Point]:
    """One a day, ``runs`` of a revision; another code object from the 30th on."""
    chosen = conditions or (lambda n: facts("a" if n < 30 * runs else "b"))
    of_series = SeriesKey(
        **{
            **{"problem": problem, "sizes": {}, "target": "sm_90", "device": "NVIDIA H200"},
            **{"toolchain": "nvcc", "metric": "time", "unit": "ns"},
            **key,
        }
    )
    made = []
    for n, value in enumerate(of):
        moment = BEGIN + DAY * (n // runs)
        revision = RevisionKey(f"r{n // runs}", moment, branch)
        measured = moment + timedelta(minutes=n % runs)
        made.append(Point(of_series, value, measured, revision, conditions=chosen(n)))
    return made


def look_all() -> None:
    while detection.detect_changes():
        pass


def found() -> list[tuple[Any, ...]]:
    """What is said of the changes that hold, whichever rows they are."""
    live = Change.objects.filter(withdrawn_at=None).order_by("series__problem", "at")
    return [
        (
            *(one.series.problem, one.revision.name, one.at, one.shown_at, one.worse),
            *(one.before, one.after, one.low, one.high, one.n_before, one.n_after),
        )
        for one in live.select_related("series", "revision")
    ]


def forget() -> None:
    for model in (Delivery, AlertEvent, Change, Alert, Datum, Baseline, SeriesRule, Series):
        model.objects.all().delete()
    Revision.objects.all().delete()
    Conditions.objects.all().delete()


def test_a_level_that_changes_is_found_with_its_interval_and_direction() -> None:
    point_storage.store(points(values(LEVELS)), Source.API)
    look_all()
    change = Change.objects.get()
    assert (change.revision.name, change.at) == ("r30", BEGIN + 30 * DAY)
    assert change.previous is not None
    assert change.previous.name == "r29"
    assert change.worse
    assert change.low is not None
    assert change.high is not None
    assert change.low < 1.10 < change.high < 1.12
    assert (change.n_before, change.n_after) == (30, 30)
    assert Series.objects.get().unchecked_from is None


def test_more_is_better_where_the_metric_says_so() -> None:
    made = points(values(LEVELS), metric="bandwidth", unit="GB/s")
    point_storage.store([Point(**vars(one) | {"better": "higher"}) for one in made], Source.API)
    look_all()
    assert not Change.objects.get().worse


def test_nothing_is_found_where_nothing_changes_or_too_little_is_known() -> None:
    point_storage.store(points(values([(100.0, 60)])), Source.API)
    point_storage.store(points(values([(100.0, 7), (150.0, 2)]), "short"), Source.API)
    look_all()
    assert not Change.objects.exists()


def test_what_is_no_measurement_is_passed_by() -> None:
    of = values(LEVELS)
    of[5:5] = [0.0, -1.0]
    point_storage.store(points(of), Source.API)
    look_all()
    assert Change.objects.count() == 1


def test_figures_become_better_with_points_that_come_since() -> None:
    made = points(values(LEVELS))
    point_storage.store(made[:36], Source.API)
    look_all()
    first = Change.objects.get()
    assert first.n_after == 6
    assert first.low is not None
    assert first.high is not None
    for upto in range(36, 60, 8):
        point_storage.store(made[upto : upto + 8], Source.API)
        look_all()
    row = Change.objects.get()
    assert row.pk == first.pk
    assert row.n_after == 30
    assert row.low is not None
    assert row.high is not None
    assert row.high - row.low < first.high - first.low


def test_points_that_arrive_late_move_a_change_and_what_was_found_before_is_withdrawn() -> None:
    made = points(values(LEVELS))
    late = made[30:34]
    point_storage.store(made[:30] + made[34:], Source.API)
    look_all()
    old = Change.objects.get()
    assert old.revision.name == "r34"
    point_storage.store(late, Source.API)
    look_all()
    old.refresh_from_db()
    assert old.withdrawn_at is not None
    assert Change.objects.get(withdrawn_at=None).revision.name == "r30"


@pytest.mark.full
@settings(
    max_examples=4,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.randoms(use_true_random=False), st.integers(1, 3))
def test_points_in_any_order_and_batches_give_the_changes_of_all_at_once(
    rng: random.Random, runs: int
) -> None:
    levels = [(100.0 * rng.choice([1, 1.03, 1.2, 0.9]), rng.randint(8, 45)) for _ in range(4)]
    of = values(levels, rng.randint(0, 999), rng.choice([0.002, 0.01]))
    codes = [facts(rng.choice("abc"), clocks={"sm": rng.choice([1500, 1501])}) for _ in of]
    made = points(of, conditions=lambda n: codes[n], runs=runs)
    moments = {one.revision.name: one.revision.at for one in made}
    assert len(moments) >= 8
    baseline = rng.choice(made).at if rng.random() < 0.5 else None

    def again(batches: Sequence[Sequence[Point]]) -> list[tuple[Any, ...]]:
        forget()
        for batch in batches:
            point_storage.store(batch, Source.API)
            if baseline and not Baseline.objects.exists():
                Baseline.objects.create(series=Series.objects.get(), at=baseline, reason="new host")
            look_all()
        return found()

    at_once = again([made])
    mixed = rng.sample(made, len(made))
    cuts = sorted(rng.sample(range(len(made)), 5))
    batches = [mixed[a:b] for a, b in zip([0, *cuts], [*cuts, len(mixed)], strict=True)]
    assert again([one for one in batches if one]) == at_once
    assert again([made[n : n + 4] for n in range(0, len(made), 4)]) == at_once


def test_a_long_history_is_looked_at_in_turns_and_gives_the_same() -> None:
    made = points(values([(100.0, 700), (110.0, 400), (100.0, 300)]), conditions=lambda n: facts())
    point_storage.store(made, Source.API)
    turns = 0
    while detection.detect_changes():
        turns += 1
    assert turns == 3
    row = Series.objects.get()
    assert [one[1] for one in found()] == ["r700", "r1100"]
    whole = detection.dry_run(row, None)
    assert [(one.at, one.before, one.after, one.low) for one in whole] == [
        (one[2], one[5], one[6], one[7]) for one in found()
    ]


def test_a_rule_of_the_series_says_what_is_too_small() -> None:
    point_storage.store(points(values(LEVELS)), Source.API)
    look_all()
    row = Series.objects.get()
    SeriesRule.objects.create(series=row, least_effect=0.2, reason="a noisy host")
    assert detection.dry_run(row, 0.2) == []
    detection.recheck(row)
    look_all()
    assert found() == []
    SeriesRule.objects.all().delete()
    detection.recheck(row)
    look_all()
    assert [one[1] for one in found()] == ["r30"]


def test_a_level_begins_anew_where_somebody_said_so() -> None:
    point_storage.store(points(values(LEVELS)), Source.API)
    look_all()
    row = Series.objects.get()
    at = BEGIN + 30 * DAY
    baseline = Baseline.objects.create(series=row, at=at, reason="another input")
    detection.recheck(row, at)
    look_all()
    assert found() == []
    baseline.removed_at = timezone.now()
    baseline.save()
    detection.recheck(row, at)
    look_all()
    assert [one[1] for one in found()] == ["r30"]


def test_what_the_same_code_varied_by_is_no_change_of_other_code() -> None:
    """Levels of one code object in one environment move by 3%: another code's 2% is within that."""
    rng = random.Random(3)
    moving = [100 * rng.choice([1, 1.03]) * rng.gauss(1, 0.001) for _ in range(40)]
    of = [value for level in moving for value in (level, level * 1.0005, level * 0.9995)]
    of += [102.5 * rng.gauss(1, 0.001) for _ in range(12)]
    point_storage.store(
        points(of, conditions=lambda n: facts("a" if n < 120 else "b"), runs=3), Source.API
    )
    look_all()
    assert [one for one in found() if one[1] == "r40"] == []


def test_several_changes_of_many_series_take_as_many_queries_as_of_one() -> None:
    def all_of(step: Any) -> None:
        while step():
            pass

    def steps(names: Sequence[str]) -> list[int]:
        forget()
        Channel.objects.all().delete()
        Channel.objects.create(
            name="c", kind=ChannelKind.EMAIL, address="a@b", alerts=["regression"]
        )
        made = [one for name in names for one in points(values(LEVELS)[:36], name)]
        point_storage.store(made, Source.API)
        return [
            queries_of(all_of, step)
            for step in (detection.detect_changes, explanations.explain, creation.raise_alerts)
        ]

    # And one for the points, read past Django.
    assert_steady(steps(["a"]), steps([f"p{n}" for n in range(12)]), usual=[12, 9, 21])


# From here on: causes and alerts.


def work(made: Sequence[Point]) -> None:
    point_storage.store(made, Source.API)
    alert_pipeline.process_pending()


def test_a_change_of_code_is_explained_and_raises_one_alert_for_all_its_series() -> None:
    Channel.objects.create(name="c", kind=ChannelKind.EMAIL, address="a@b", alerts=["regression"])
    work(points(values(LEVELS), "a") + points(values(LEVELS, 1), "b"))
    changes = Change.objects.all()
    assert [(one.cause, one.rule) for one in changes] == [("code", "another source")] * 2
    assert changes[0].explanation["differences"][0]["aspect"] == "revision"
    alert = Alert.objects.get()
    assert (alert.kind, alert.revision.name) == (AlertKind.REGRESSION, "r30")
    assert (alert.n_series, alert.cause, alert.at) == (2, "code", BEGIN + 30 * DAY)
    assert alert.worst_ratio == max(one.ratio for one in changes)
    assert [one.kind for one in alert.events.all()] == [EventKind.RAISED]
    assert Delivery.objects.count() == 1
    assert not alert_pipeline.has_pending()


def test_series_that_join_later_make_the_alert_grow() -> None:
    work(points(values(LEVELS), "a"))
    work(points(values(LEVELS, 1), "b"))
    alert = Alert.objects.get()
    assert alert.n_series == 2
    assert [(one.kind, one.note) for one in alert.events.all()] == [
        (EventKind.RAISED, ""),
        (EventKind.GREW, "1 series more"),
    ]


def test_the_same_code_in_the_same_environment_raises_no_alert() -> None:
    work(points(values(LEVELS), conditions=lambda n: facts("a")))
    change = Change.objects.get()
    assert change.cause == "noise"
    assert change.explanation["feeds_noise_floor"]
    assert not Alert.objects.exists()
    assert not alert_pipeline.has_pending()


def test_another_driver_is_said_to_be_the_environment() -> None:
    work(
        points(values(LEVELS), conditions=lambda n: facts(driver="580.95" if n < 30 else "590.10"))
    )
    assert Alert.objects.get().cause == "environment"


def test_what_nobody_recorded_cannot_be_said() -> None:
    work(points(values(LEVELS), conditions=lambda n: {}))
    assert Alert.objects.get().cause == "cannot be said"


def test_a_muted_series_has_changes_and_no_alerts() -> None:
    made = points(values(LEVELS))
    work(made[:20])
    SeriesRule.objects.create(series=Series.objects.get(), muted=True, reason="known to be noisy")
    work(made[20:])
    assert Change.objects.count() == 1
    assert not Alert.objects.exists()
    assert not alert_pipeline.has_pending()


@pytest.mark.parametrize("how", [thresholds.Proposal(least_effect=0.01), None])
def test_a_series_that_is_muted_no_more_raises_an_alert_of_the_level_that_holds(
    how: thresholds.Proposal | None, admin_user: User
) -> None:
    made = points(
        values([(100.0, 30), (110.0, 30), (121.0, 30)]), conditions=lambda n: facts("abc"[n // 30])
    )
    work(made[:30])
    row = Series.objects.get()
    thresholds.save(row, thresholds.Proposal(muted=True), "the host is noisy", admin_user)
    work(made[30:])
    assert Change.objects.filter(withdrawn_at=None).count() == 2
    thresholds.save(row, thresholds.Proposal(muted=True, least_effect=0.02), "still", admin_user)
    alert_pipeline.process_pending()
    assert not Alert.objects.exists()
    if how is None:
        thresholds.reset(row, "another host", admin_user)
    else:
        assert thresholds.dry_run(row, how).unmuted
        thresholds.save(row, how, "another host", admin_user)
    alert_pipeline.process_pending()
    change = Alert.objects.get().changes.get()
    assert (change.revision.name, change.series) == ("r60", row)


def test_a_level_that_is_back_proposes_that_it_is_fixed() -> None:
    levels = [(100.0, 30), (110.0, 15), (100.0, 15)]
    made = points(values(levels), conditions=lambda n: facts("b" if 30 <= n < 45 else "a"))
    work(made[:45])
    regression = Alert.objects.get()
    assert regression.recovered_at is None
    work(made[45:])
    regression.refresh_from_db()
    assert regression.recovered_at == BEGIN + 45 * DAY, "the point's moment, not the clock's"
    assert regression.state == AlertState.NEW, "it decides nothing"
    assert [one.kind for one in regression.events.all()] == [EventKind.RAISED, EventKind.RECOVERED]
    assert Alert.objects.filter(kind=AlertKind.IMPROVEMENT).count() == 1


def test_an_alert_is_back_since_its_last_series_is_however_low_they_go_then(
    admin_client: Client,
) -> None:
    """Looked at in one turn or in many."""

    def made(problem: str, back_at: int, seed: int) -> list[Point]:
        levels = [(100.0, 30), (110.0, back_at - 30), (100.0, 75 - back_at), (80.0, 15)]
        codes = lambda n: facts("abac"[sum(n >= at for at in (30, back_at, 75))])  # noqa: E731
        return points(values(levels, seed), problem, codes)

    both = made("a", 45, 0), made("b", 50, 1)
    work([*both[0], *both[1][:50]])
    regression = Alert.objects.get(revision__name="r30")
    assert regression.recovered_at is None, "the other series is not back"
    work(both[1][50:])
    regression.refresh_from_db()
    assert regression.recovered_at == BEGIN + 50 * DAY
    shown = f"{regression.recovered_at:%Y-%m-%d %H:%M}"
    html = admin_client.get(regression.get_absolute_url()).content.decode()
    assert f"Back at the previous level since {shown} UTC" in html
    forget()
    work(both[0] + both[1])
    assert Alert.objects.get(revision__name="r30").recovered_at == BEGIN + 50 * DAY


def test_an_alert_whose_change_late_points_move_stays_and_says_so() -> None:
    made = points(values(LEVELS))
    work(made[:30] + made[34:])
    alert = Alert.objects.get()
    assert alert.revision is not None
    assert alert.revision.name == "r34"
    work(made[30:34])
    alert = Alert.objects.get()
    assert alert.revision is not None
    assert (alert.state, alert.n_series, alert.revision.name) == (AlertState.NEW, 1, "r30")
    events = [(event.kind, event.note) for event in alert.events.all()]
    moved = "the first bad revision is r30, not r34"
    assert events == [(EventKind.RAISED, ""), (EventKind.NOTE, moved)]


def test_an_alert_whose_changes_are_disproved_is_closed_and_says_so(admin_user: User) -> None:
    work(points(values(LEVELS)))
    alert, row = Alert.objects.get(), Series.objects.get()
    thresholds.save(row, thresholds.Proposal(least_effect=0.5), "too small", admin_user)
    alert_pipeline.process_pending()
    alert.refresh_from_db()
    assert (alert.state, alert.n_series) == (AlertState.INVALID, 0)
    last = alert.events.last()
    assert last is not None
    assert last.note == "later points no longer show a change"
    thresholds.reset(row, "not too small after all", admin_user)
    alert_pipeline.process_pending()
    alert.refresh_from_db()
    assert (alert.state, alert.n_series) == (AlertState.NEW, 1), "it is found again"


def test_one_commit_in_two_directions_is_one_thing_to_look_at() -> None:
    Channel.objects.create(name="c", kind=ChannelKind.EMAIL, address="a@b", alerts=["regression"])
    work(points(values(LEVELS), "a", branch="main"))
    first = Alert.objects.get()
    work(points(values(LEVELS, 1), "b", device="NVIDIA H100"))
    first.refresh_from_db()
    assert first.n_series == 2, "the trunk is the trunk, whether its branch is stated or not"
    work(points(values([(110.0, 30), (100.0, 30)]), "c", branch="main"))
    assert Alert.objects.exclude(pk=first.pk).get().duplicate_of == first
    assert Delivery.objects.count() == 1, "the same is told once"


def test_a_model_is_downstream_of_its_kernels() -> None:
    from codegen_app.graphs.models import TemplateNode
    from tests.app import factories

    task = factories.task()
    node = TemplateNode.objects.get(problem=task.problem)
    work(points(values(LEVELS), "kernel"))
    kernel = Alert.objects.get()
    Series.objects.filter(problem="kernel").update(own_problem=task.problem)
    later = [
        Point(
            **vars(one)
            | {"revision": RevisionKey(f"m{n}", one.at + timedelta(hours=1), repository="models")}
        )
        for n, one in enumerate(points(values(LEVELS), node.graph.name))
    ]
    work(later)
    model = Alert.objects.exclude(pk=kernel.pk).get()
    assert model.downstream_of == kernel


def daily(count: int, last: datetime) -> list[Point]:
    made = points(values([(100.0, count)]))
    return [
        Point(
            **vars(one)
            | {
                "measured_at": last - DAY * (count - 1 - n),
                "revision": RevisionKey(f"d{n}", last - DAY * (count - 1 - n)),
            }
        )
        for n, one in enumerate(made)
    ]


def test_a_series_whose_points_stop_coming_raises_an_alert_that_points_close() -> None:
    last = timezone.now() - 2 * DAY
    work(daily(12, last))
    row = Series.objects.get()
    assert row.stale_at == last + 3 * DAY, "three times its gaps of a day"
    assert missing_data.update_alerts() == 0
    Series.objects.update(stale_at=timezone.now())
    assert missing_data.update_alerts() == 1
    assert missing_data.update_alerts() == 0, "once"
    alert = Alert.objects.get()
    assert (alert.kind, alert.series) == (AlertKind.MISSING, row)
    assert "gaps between points" in alert.events.get().note
    again = daily(3, timezone.now())
    work([Point(**vars(one) | {"revision": RevisionKey("again")}) for one in again[1:]])
    assert missing_data.update_alerts() == 1
    alert.refresh_from_db()
    assert alert.state == AlertState.FIXED
    assert alert.recovered_at == again[2].measured_at, "of those since the alert the first"
    event = alert.events.last()
    assert (event.kind, event.note) == (EventKind.RECOVERED, "new points arrived")
    assert (event.before, event.after) == ({"state": "new"}, {"state": "fixed"})


def test_a_history_that_was_over_when_it_came_is_not_missing() -> None:
    work(daily(12, timezone.now() - 30 * DAY))
    assert Series.objects.get().stale_at is None


def test_a_rule_says_when_points_are_missing() -> None:
    made = daily(3, timezone.now())
    work(made[:2])
    row = Series.objects.get()
    assert row.stale_at is None, "two points have no rhythm"
    SeriesRule.objects.create(series=row, stale_after=timedelta(hours=2), reason="nightly")
    work(made[2:])
    row.refresh_from_db()
    assert row.stale_at == made[2].measured_at + timedelta(hours=2)


def test_a_machine_that_is_down_is_told_once() -> None:
    Channel.objects.create(name="c", kind=ChannelKind.EMAIL, address="a@b", alerts=["missing"])
    made = daily(12, timezone.now())
    other = [Point(**vars(one) | {"series": points([1.0], "b")[0].series}) for one in made]
    work(made + other)
    Series.objects.update(stale_at=timezone.now() - DAY)
    missing_data.update_alerts()
    first, second = Alert.objects.order_by("pk")
    assert second.duplicate_of == first
    assert Delivery.objects.count() == 1
