"""How labelled series are scored, and the benchmarks that need no other detector."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmarks.changes.annotated import agreement, annotated, score_of, turing_series
from tests.benchmarks.detection import LABELLED, best_shares


def test_scores_are_those_of_the_turing_benchmark() -> None:
    """The beginning is a place that everybody marks; a place within five values is the same."""
    precision, recall, f1 = agreement([28], [[28], [], [30]])
    assert (precision, recall, f1) == (1.0, 1.0, 1.0)
    precision, recall, _ = agreement([10, 50], [[30], [52]])
    assert precision == pytest.approx(2 / 3)
    assert recall == pytest.approx((1 / 2 + 1) / 2)
    assert agreement([], [[5, 20]])[:2] == (1.0, pytest.approx(1 / 3))


def test_one_place_named_twice_counts_once() -> None:
    precision, recall, _ = agreement([28, 30], [[29]])
    assert precision == pytest.approx(2 / 3)
    assert recall == 1.0


def test_the_public_series_is_read_and_its_levels_are_found() -> None:
    score = score_of(annotated(LABELLED))
    assert score.n == 1
    assert score.recall == 1.0
    assert score.f1 > score.f1_of_none


def test_a_checkout_of_the_turing_dataset_is_read(tmp_path: Path) -> None:
    for name, values in (("steady", [5.0] * 40), ("below", [-1.0] * 20)):
        folder = tmp_path / "datasets" / name
        folder.mkdir(parents=True)
        row = {"name": name, "series": [{"raw": values}]}
        (folder / f"{name}.json").write_text(json.dumps(row))
    (tmp_path / "annotations.json").write_text(
        json.dumps({"steady": {"6": []}, "below": {"6": []}})
    )
    score = score_of(turing_series(tmp_path))
    assert (score.n, score.f1, score.left_out) == (1, 1.0, ["below"])


def test_a_folder_that_is_no_checkout_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"annotations\.json: no such file"):
        list(turing_series(tmp_path))


def test_no_test_finds_a_step_of_one_deviation_in_six_values() -> None:
    """The bound of the goals: found sooner, it would be found where nothing changes as well."""
    one, three = best_shares(1.0, (6, 20), 0.5, 1), best_shares(3.0, (6, 20), 0.5, 1)
    assert one[0] < 0.3
    assert one[1] > 0.7
    assert three[0] > 0.98
