"""Histories of mixed shapes with known changes, which the parameters were not chosen by."""

from __future__ import annotations

import pytest

from scheduler.stats.changes import find_changes
from tests.benchmarks.changes.labelled import Agreement, shaped
from tests.benchmarks.changes.shapes import SHAPES, Labelled

SERIES, SEED = 4, 2026
CASES = list(shaped(SERIES, SEED))


def named(case: Labelled) -> list[int]:
    return [change.index for _, change in find_changes(case.values, case.revisions)]


@pytest.mark.full
def test_labelled_changes_are_found_and_hardly_anything_else() -> None:
    agreement = Agreement()
    for _, case in CASES:
        agreement.add(named(case), case.changes)
    assert agreement.labelled >= 35
    assert agreement.found >= 0.9 * agreement.labelled
    assert agreement.named - agreement.found <= 0.1 * agreement.labelled


@pytest.mark.parametrize("shape", ["share_of_slow", "noisier", "few"])
def test_where_no_level_changes_nothing_is_said(shape: str) -> None:
    cases = [case for name, case in CASES if name == shape]
    assert len(cases) == SERIES
    assert [named(case) for case in cases] == [[]] * SERIES


def test_each_shape_is_held_to_its_labels() -> None:
    assert {name for name, _ in CASES} == {shape.__name__ for shape in SHAPES}


def test_a_change_is_found_once_and_near_its_place() -> None:
    agreement = Agreement()
    agreement.add([40, 43, 90], (42, 80))
    assert (agreement.found, agreement.named, agreement.labelled) == (1, 3, 2)
    assert agreement.f1 == pytest.approx(2 / 5)
