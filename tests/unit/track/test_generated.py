"""The generated history says that it is one, is the same for a seed, and shows what it injects."""

from __future__ import annotations

import pytest

from scheduler.isa.occupancy import rules_of
from scheduler.targets import find
from scheduler.track.evidence import Cause
from scheduler.track.generated import REVISIONS, InjectedKind, generate_history
from scheduler.track.generated_label import LABEL
from tests.benchmarks.causes import Case, cases

SERIES = 24


def right(found: list[Case]) -> float:
    return sum(case.right for case in found) / len(found)


@pytest.mark.full
def test_everything_of_it_is_labelled_as_generated() -> None:
    for series in generate_history(6, 1):
        assert series.generated
        assert series.name.startswith(LABEL)
        assert len(series.points) == REVISIONS
        for point in series.points:
            texts = point.revision, point.environment.host, point.environment.unit
            assert all(text.startswith(LABEL) for text in texts)


def test_equal_seeds_give_equal_histories() -> None:
    assert generate_history(4, 3) == generate_history(4, 3)
    assert generate_history(4, 3) != generate_history(4, 4)


def test_every_kind_is_injected() -> None:
    kinds = {
        kind for series in generate_history(60, 0) for one in series.injected for kind in one.kinds
    }
    assert kinds == set(InjectedKind)


def test_resources_are_what_the_makers_rules_say() -> None:
    """Registers over a boundary show fewer waves: the code is no invention of its own."""
    for series in generate_history(6, 1):
        rules = rules_of(find(series.target))
        assert rules is not None
        for point in series.points:
            (resources,) = point.code.resources.values()
            by_registers = rules.waves_by_registers(resources, find(series.target))
            assert rules.waves(resources) <= by_registers


def test_causes_are_labelled_right() -> None:
    """What ``python -m tests.benchmarks.causes`` prints, for a smaller history."""
    found = list(cases(SERIES, 11))
    assert right(found) >= 0.95
    mixed = [case for case in found if case.injected.cause is Cause.UNKNOWN]
    assert mixed
    assert right(mixed) >= 0.8
    assert not any(case.breaks_a_promise for case in found)
