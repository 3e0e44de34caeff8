"""Series with one value a side, compared with the history of the trunk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.test import Client

from codegen_app.accounts import tokens
from codegen_app.tracking.compare_revisions.comparison import RevisionComparison, compare_sides
from codegen_app.tracking.compare_revisions.sides import comparison_url
from codegen_app.tracking.models import Baseline, Datum, Series
from codegen_app.tracking.pages.compare_revisions.query import revisions_page
from codegen_app.tracking.services import alert_pipeline
from scheduler.results.points.model import Point
from tests.support.measured_revisions import FACTS, point, revision, store
from tests.support.queries import assert_steady, queries_of

pytestmark = pytest.mark.django_db
TRUNK = 30


def single(problem: str, value: float, name: str, day: int, **others: Any) -> Point:
    """One run with one value, as Google Benchmark without repetitions sends it."""
    branch = others.pop("branch", "main")
    stored = point(problem, value, revision(name, day, branch), samples=0, **others)
    return replace(stored, value=value, low=None, high=None, n=1)


def trunk(
    problem: str, level: float = 1000.0, days: Sequence[int] = range(TRUNK), **others: Any
) -> None:
    """A point a day in noise of 2%."""
    noise = np.random.default_rng([ord(char) for char in problem]).normal(0, 0.02, TRUNK + 1)
    store(
        *(
            single(problem, level * float(np.exp(noise[day])), f"main{day}", day, **others)
            for day in days
        )
    )


def row(found: RevisionComparison, problem: str) -> Any:
    (result,) = [one for one in found.shown(found.comparison.rows) if one.problem == problem]
    return result


def test_half_as_slow_again_at_one_value_is_slower() -> None:
    for problem, value in (("slower", 1500), ("same", 1010), ("faster", 700)):
        trunk(problem)
        store(single(problem, value, "topic", TRUNK, branch="topic", code="new"))
    found = compare_sides("base:main", "branch:topic")
    assert (found.before.name, found.after.name) == (f"main{TRUNK - 1}", "topic")
    assert {name: n for name, n in found.counts.items() if n} == {
        "slower": 1,
        "faster": 1,
        "same": 1,
    }
    slower = row(found, "slower")
    assert (slower.method, slower.n_before, slower.n_after) == ("history", TRUNK, 1)
    assert slower.before == pytest.approx(1000, rel=0.02)
    assert slower.after == 1500
    assert slower.ratio == pytest.approx(1.5, rel=0.02)
    assert 900 < slower.expected_low < 1000 < slower.expected_high < 1150
    assert slower.why.startswith("code")


def test_points_of_branches_and_later_points_of_the_trunk_are_no_history() -> None:
    trunk("mm")
    store(
        *(single("mm", 1500, f"other{n}", n, branch="other") for n in range(TRUNK)),
        *(single("mm", 1500, f"later{n}", TRUNK + 1 + n) for n in range(9)),
        single("mm", 1500, "topic", TRUNK, branch="topic", code="new"),
    )
    found = row(compare_sides("base:main", "branch:topic"), "mm")
    assert (found.status, found.before) == ("slower", pytest.approx(1000, rel=0.02))
    # Two branches have no history that leads from one to the other.
    found = row(compare_sides("branch:other", "branch:topic"), "mm")
    assert (found.status, found.why) == (
        "unknown",
        "insufficient data: 1 sample, at least 5 required",
    )


def test_a_series_that_the_base_did_not_measure_is_compared_all_the_same() -> None:
    """Series are measured in turns: the newest point before the base stands for it."""
    trunk("mm", days=range(0, TRUNK, 3))
    trunk("softmax", days=range(TRUNK))
    for problem in ("mm", "softmax"):
        store(single(problem, 1500, "topic", TRUNK, branch="topic", code="new"))
    store(single("unknown so far", 1500, "topic", TRUNK, branch="topic"))
    found = compare_sides(f"main{TRUNK - 1}", "topic")
    assert {name: n for name, n in found.counts.items() if n} == {"slower": 2, "new": 1}
    assert row(found, "mm").n_before == TRUNK / 3
    assert revisions_page(f"main{TRUNK - 1}", "topic").total == 3


def test_a_throughput_is_expected_in_its_own_unit() -> None:
    trunk("copy", 4000.0, metric="bandwidth", unit="GB/s", better="higher")
    store(
        single(
            *("copy", 2000, "topic", TRUNK),
            **{"branch": "topic", "metric": "bandwidth", "unit": "GB/s", "better": "higher"},
            code="new",
        )
    )
    found = row(compare_sides("base:main", "branch:topic"), "copy")
    assert (found.status, found.after) == ("slower", 2000)
    assert found.ratio == pytest.approx(2.0, rel=0.02)
    assert 3500 < found.expected_low < 4000 < found.expected_high < 4500
    assert found.before == pytest.approx(4000, rel=0.02)


def test_the_history_is_that_of_the_machine_that_measured_the_branch() -> None:
    """Two machines measure in turn; the slower one also measures the branch."""
    slow, fast = {**FACTS, "host": "slow"}, {**FACTS, "host": "fast"}
    trunk("mm", days=range(0, TRUNK, 2), facts=fast)
    trunk("mm", 1300.0, days=range(1, TRUNK + 1, 2), facts=slow)
    store(single("mm", 1300, "topic", TRUNK + 1, branch="topic", facts=slow, code="new"))
    Datum.objects.filter(revision__name=f"main{TRUNK}").delete()
    found = row(compare_sides(f"main{TRUNK - 2}", "topic"), "mm")
    assert (found.status, found.n_before) == ("same", TRUNK / 2 - 1)
    assert found.before == pytest.approx(1300, rel=0.02)
    # It is so as well if this machine measured the side before.
    found = row(compare_sides(f"main{TRUNK - 1}", "topic"), "mm")
    assert (found.status, found.n_before) == ("same", TRUNK / 2)
    assert found.before == pytest.approx(1300, rel=0.02)
    # A machine that measured no history is another environment.
    third = {**FACTS, "host": "third"}
    store(single("mm", 1300, "other", TRUNK + 1, branch="other", facts=third, code="new"))
    found = row(compare_sides(f"main{TRUNK - 2}", "other"), "mm")
    assert (found.status, found.why[:21]) == ("unknown", "different environment")


def test_a_level_begins_at_a_change_and_at_a_baseline() -> None:
    trunk("mm", days=range(20))
    trunk("mm", 1400.0, days=range(20, TRUNK), code="slow")
    store(single("mm", 1400, "topic", TRUNK, branch="topic", code="new"))
    alert_pipeline.process_pending()
    assert row(compare_sides("base:main", "branch:topic"), "mm").status == "same"
    # Without the change the levels are one, wide as it is.
    series = Series.objects.get()
    series.changes.all().delete()
    assert row(compare_sides("base:main", "branch:topic"), "mm").status == "uncertain"
    begins = Datum.objects.get(revision__name="main20").at
    Baseline.objects.create(series=series, at=begins, reason="another method")
    assert row(compare_sides("base:main", "branch:topic"), "mm").status == "same"


def test_the_answer_says_what_to_measure_again_and_whether_anything_was_compared(
    reader: Client,
) -> None:
    trunk("mm")
    store(single("mm", 1500, "main30", TRUNK))  # the base itself is off
    store(single("mm", 1500, "topic", TRUNK + 1, branch="topic", code="new"))
    _, token = tokens.create_token(User.objects.create_superuser("ci"), "CI", ["read"], None)
    headers = {"Authorization": f"Bearer {token}"}
    query = {"before": "base:main", "after": "branch:topic"}
    answer = reader.get("/api/v1/compare", query, headers=headers).json()
    assert (answer["judged"], answer["counts"]["uncertain"]) == (0, 1)
    (again,) = answer["rerun"]
    assert (again["revision"], again["side"], again["branch"]) == ("main30", "before", "main")
    assert again["runs"] >= 1
    assert again["device_name"] == "NVIDIA H200"
    assert "**No series could be compared.**" in answer["markdown"]
    assert "#### Uncertain: 1" in answer["markdown"]
    address = comparison_url("base:main", "branch:topic")
    page = reader.get(address).content.decode()
    assert "No series could be compared." in page
    assert "status=uncertain" in page
    assert "times its level already, n = 1: measure the side before" in page
    only = reader.get("/api/v1/compare", {**query, "status": "uncertain"}, headers=headers).json()
    assert only["total"] == 1


def test_queries_are_as_many_whatever_the_number_of_series() -> None:
    slow = {**FACTS, "host": "slow"}
    counts = []
    for problems in (range(2), range(2, 40)):
        for number in problems:
            trunk(f"mm {number}")
            facts = slow if number % 2 else FACTS
            store(single(f"mm {number}", 1500, "topic", TRUNK, branch="topic", facts=facts))
        counts.append([queries_of(revisions_page, "base:main", "branch:topic")])
    assert_steady(*counts, usual=[13])
