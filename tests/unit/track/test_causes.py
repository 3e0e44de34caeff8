"""Why a series moved, and what is never said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.track.causes import RULES, Explanation, explain
from scheduler.track.evidence import Cause
from scheduler.track.sides import CodeObject, Compiler, Environment, Point, Side
from tests.support.tracked import (
    at,
    chosen_anew,
    edited,
    elsewhere,
    point,
    recompiled,
    repeated,
    side,
)

BEFORE = point()
SAME = at(BEFORE, 120.0)
THROTTLED = {"sm_clock_mhz": 1755.0, "throttled_power": 0.4}
UNKNOWN = Environment()

CASES = [
    ("no difference", edited(BEFORE, 100.1), Cause.NOISE, {Cause.NOISE}),
    ("same code, same environment", SAME, Cause.NOISE, {Cause.NOISE}),
    (
        "same code, same environment",
        replace(recompiled(BEFORE, 120.0), code=BEFORE.code),
        Cause.NOISE,
        {Cause.NOISE},
    ),
    (
        "same code, other environment",
        elsewhere(SAME, driver="580.159"),
        Cause.ENVIRONMENT,
        {Cause.ENVIRONMENT},
    ),
    (
        "same code, other environment",
        replace(SAME, readings=THROTTLED),
        Cause.ENVIRONMENT,
        {Cause.ENVIRONMENT},
    ),
    (
        "same code, environment not known",
        replace(SAME, environment=UNKNOWN),
        Cause.UNKNOWN,
        {Cause.ENVIRONMENT, Cause.NOISE},
    ),
    (
        "code and environment",
        elsewhere(edited(BEFORE, 120.0), unit="unit 2"),
        Cause.UNKNOWN,
        {Cause.CODE, Cause.ENVIRONMENT},
    ),
    (
        "code and environment",
        elsewhere(chosen_anew(BEFORE, 120.0), unit="unit 2"),
        Cause.UNKNOWN,
        {Cause.TUNING, Cause.ENVIRONMENT},
    ),
    (
        "code not known, other environment",
        elsewhere(replace(SAME, code=CodeObject(), source_digest=""), driver="580.159"),
        Cause.UNKNOWN,
        {Cause.CODE, Cause.ENVIRONMENT},
    ),
    (
        "environment not known",
        replace(edited(BEFORE, 120.0), environment=UNKNOWN),
        Cause.UNKNOWN,
        {Cause.CODE, Cause.ENVIRONMENT},
    ),
    (
        "environment not known",
        elsewhere(edited(BEFORE, 120.0), driver=""),
        Cause.UNKNOWN,
        {Cause.CODE, Cause.ENVIRONMENT},
    ),
    (
        "code not known",
        replace(SAME, code=CodeObject(), source_digest="", revision="r2"),
        Cause.UNKNOWN,
        {Cause.CODE, Cause.TUNING, Cause.COMPILER, Cause.NOISE},
    ),
    (
        "several changed together",
        replace(edited(BEFORE, 120.0), compiler=Compiler("rocm", "7.2.0", ("-O3",), "headers 1")),
        Cause.UNKNOWN,
        {Cause.CODE, Cause.COMPILER},
    ),
    (
        "several changed together",
        chosen_anew(BEFORE, 120.0, others={}),
        Cause.UNKNOWN,
        {Cause.CODE, Cause.TUNING},
    ),
    (
        "partly recorded",
        replace(edited(BEFORE, 120.0), compiler=Compiler()),
        Cause.UNKNOWN,
        {Cause.CODE, Cause.COMPILER},
    ),
    ("another choice", chosen_anew(BEFORE, 120.0), Cause.TUNING, {Cause.TUNING}),
    (
        "another choice",
        chosen_anew(BEFORE, 120.0, others={}, revision="r1"),
        Cause.TUNING,
        {Cause.TUNING},
    ),
    ("another compiler", recompiled(BEFORE, 120.0), Cause.COMPILER, {Cause.COMPILER}),
    ("another source", edited(BEFORE, 120.0), Cause.CODE, {Cause.CODE}),
    (
        "another source",
        replace(
            edited(BEFORE, 120.0),
            source_digest="source 1",
            compiler=replace(BEFORE.compiler, digest="headers 2"),
        ),
        Cause.CODE,
        {Cause.CODE},
    ),
    (
        "code object without a reason",
        replace(SAME, code=replace(SAME.code, digest="code 2")),
        Cause.UNKNOWN,
        {Cause.CODE, Cause.COMPILER},
    ),
]


@pytest.mark.parametrize(("rule", "after", "cause", "candidates"), CASES)
def test_each_rule(rule: str, after: Point, cause: Cause, candidates: set[Cause]) -> None:
    found = explain(side(BEFORE), side(after))
    assert (found.rule, found.cause) == (rule, cause)
    assert set(found.candidates) == candidates
    assert bool(found.next_step) == (cause is Cause.UNKNOWN), "what would decide is said"


def test_every_rule_but_the_drift_has_a_case() -> None:
    assert {rule for rule, *_ in CASES} == {rule.name for rule in RULES} - {"drift"}


def test_a_drift_is_noise() -> None:
    values = [100 * 1.01 ** max(0, min(n - 6, 18)) for n in range(30)]
    points = tuple(at(BEFORE if n < 15 else edited(BEFORE, 1.0), v) for n, v in enumerate(values))
    found = explain(Side(tuple(reversed(points[:15]))), Side(points[15:]))
    assert (found.rule, found.cause) == ("drift", Cause.NOISE)


def test_a_step_is_no_drift_and_a_spike_is_no_step() -> None:
    before = repeated(BEFORE, 15)
    step = explain(before, repeated(edited(BEFORE, 110.0), 12, seed=1))
    assert step.cause is Cause.CODE
    level = repeated(edited(BEFORE, 100.0), 12, seed=1).points
    spike = explain(before, Side((at(level[0], 180.0), *level[1:])))
    assert (spike.rule, spike.cause) == ("no difference", Cause.NOISE)


def test_a_step_is_shown_by_few_points_with_a_spike_among_them() -> None:
    later = repeated(edited(BEFORE, 125.0), 3, seed=1).points
    found = explain(repeated(BEFORE, 15), Side((*later, at(later[0], 190.0))))
    assert found.cause is Cause.CODE


def test_only_the_same_code_in_the_same_environment_feeds_the_noise_floor() -> None:
    assert explain(side(BEFORE), side(SAME)).feeds_noise_floor
    assert not explain(side(BEFORE), side(edited(BEFORE, 120.0))).feeds_noise_floor
    assert not explain(side(BEFORE), side(elsewhere(SAME, host="host 2"))).feeds_noise_floor


def test_a_choice_among_configurations_whose_source_changed_too() -> None:
    """The earlier configuration was built at the later revision, from another source."""
    after = chosen_anew(replace(BEFORE, source_digest="before", code=CodeObject("c")), 120.0)
    found = explain(side(BEFORE), side(after))
    assert set(found.candidates) == {Cause.CODE, Cause.TUNING}
    assert found.next_step == "measure the earlier configuration (BLOCK_M=64) at r2"


def test_reasons_say_what_clocks_explain() -> None:
    after = replace(edited(BEFORE, 130.0), readings=THROTTLED)
    found = explain(side(BEFORE), side(after))
    assert found.cause is Cause.UNKNOWN
    assert "clocks alone explain a ratio of at most 1.128; 1.300 was measured" in found.reasons
    assert "locked clocks" in found.next_step
    other_way = explain(side(after), side(edited(BEFORE, 150.0, 3)))
    assert (
        "clocks changed in the opposite direction; the ratio is 1.154 nevertheless"
        in other_way.reasons
    )


def test_reasons_say_what_was_not_read() -> None:
    silent = replace(BEFORE, readings={}, code=CodeObject())
    found = explain(side(silent), side(replace(edited(silent, 120.0), code=CodeObject())))
    assert found.cause is Cause.CODE
    assert "clocks are not recorded: they may differ" in found.reasons
    assert "code objects are not recorded: their inputs were compared instead" in found.reasons


def pick(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


@st.composite
def points(draw: st.DrawFn) -> Point:
    """Any combination of what may be known and equal, and of what not."""
    return replace(
        at(BEFORE, draw(pick(90.0, 100.0, 100.1, 120.0))),
        revision=draw(pick("", "r1", "r2")),
        source_digest=draw(pick("", "source 1", "source 2")),
        configuration=draw(pick("", "BLOCK_M=64", "BLOCK_M=128")),
        compiler=draw(pick(Compiler(), BEFORE.compiler, Compiler("rocm", "7.2.0"))),
        code=CodeObject(
            draw(pick("", "code 1", "code 2")), draw(pick("", "instructions 1", "instructions 2"))
        ),
        environment=draw(
            pick(UNKNOWN, BEFORE.environment, replace(BEFORE.environment, driver="580.159"))
        ),
        readings=draw(pick({}, BEFORE.readings, THROTTLED)),
    )


def sides() -> st.SearchStrategy[Side]:
    return st.lists(points(), min_size=1, max_size=4).map(lambda found: Side(tuple(found)))


def told(found: Explanation) -> tuple[Any, ...]:
    return found.cause, found.rule, set(found.candidates), found.feeds_noise_floor


@settings(deadline=None)
@given(sides(), sides())
def test_exchanged_sides_have_the_same_cause(one: Side, other: Side) -> None:
    there, back = explain(one, other), explain(other, one)
    assert told(there) == told(back)
    assert there.ratio == pytest.approx(1 / back.ratio)
    assert {d.aspect for d in there.differences} == {d.aspect for d in back.differences}


@settings(deadline=None)
@given(points(), points())
def test_equal_code_objects_never_give_a_verdict_of_code(one: Point, other: Point) -> None:
    other = replace(other, code=replace(one.code, digest="code", instructions_digest=""))
    one = replace(one, code=other.code)
    found = explain(side(one), side(other))
    assert not {Cause.CODE, Cause.TUNING, Cause.COMPILER} & set(found.candidates)


@settings(deadline=None)
@given(sides(), sides())
def test_other_environments_never_give_a_verdict_of_code(one: Side, other: Side) -> None:
    def moved(where: Side, driver: str) -> Side:
        return Side(tuple(elsewhere(point, driver=driver, device="d") for point in where.points))

    found = explain(moved(one, "1"), moved(other, "2"))
    assert found.cause in {Cause.ENVIRONMENT, Cause.UNKNOWN, Cause.NOISE}
    assert found.cause is not Cause.NOISE or found.rule == "no difference"
    assert "driver 1 → 2" in found.reasons or found.rule == "no difference"


@settings(deadline=None)
@given(sides(), sides())
def test_code_is_named_only_where_all_is_known(one: Side, other: Side) -> None:
    found = explain(one, other)
    if found.cause in {Cause.CODE, Cause.TUNING, Cause.COMPILER}:
        for which in (one, other):
            assert any(each.environment.known for each in which.points)
            assert any(each.compiler.known for each in which.points)


def test_a_side_has_points() -> None:
    with pytest.raises(ValueError, match="must have points"):
        Side(())
    for value in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="above 0"):
            side(replace(BEFORE, value=value))
