"""The long tier is run by command alone: what it found, and when, is on record."""

from __future__ import annotations

import datetime
import json
import subprocess
import warnings
from pathlib import Path

import pytest

from tests.flaky import MOST_DAYS, entry, overdue
from tests.long import EVIDENCE
from tests.support.accepted import accepted
from tests.support.tiers import LEFT_OUT

ROOT = Path(__file__).parents[2]
MOST_COMMITS = 50
AGAIN = "python -m tests.long"
IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@localhost")


def commits_since(commit: str) -> int:
    """How many commits there are since; 0 where git or the commit is not there."""
    done = subprocess.run(
        ["git", "rev-list", "--count", f"{commit.removesuffix('-dirty')}..HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return int(done.stdout) if done.returncode == 0 else 0


def test_every_long_test_has_passed_and_lately(request: pytest.FixtureRequest) -> None:
    """One that never has fails here; one that last passed long ago is said, and refuses nothing."""
    known = json.loads(EVIDENCE.read_text())
    there = set(request.config.stash[LEFT_OUT])
    lacking = sorted(there - known.keys())
    assert not lacking, f"never passed: {AGAIN} {lacking[0]} (of {len(lacking)})"
    age = max(map(commits_since, {test["commit"] for test in known.values()}))
    if age > MOST_COMMITS:
        warnings.warn(f"the long tests last passed {age} commits ago: {AGAIN}", stacklevel=1)


def test_no_flaky_test_is_left_for_longer_than_a_week() -> None:
    late = overdue(datetime.datetime.now(datetime.UTC).date())
    assert not late, f"mend the cause and take it out of tests/flaky.toml: {', '.join(late)}"


def test_an_entry_of_a_flaky_test_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, found = tmp_path / "flaky.toml", datetime.date(2026, 3, 1)
    monkeypatch.setattr("tests.flaky.FLAKY", file)
    file.write_text(entry('a.py::test["x"]', found, 'assert "a" == 1\nand more'))
    assert overdue(found + datetime.timedelta(days=MOST_DAYS)) == []
    assert overdue(found + datetime.timedelta(days=MOST_DAYS + 1)) == ['a.py::test["x"]']


def test_what_commits_accept_counts_until_the_figures_are_recorded_anew(tmp_path: Path) -> None:
    def commit(message: str, figures: str) -> None:
        (tmp_path / "gates.json").write_text(figures)
        for command in (["add", "."], ["commit", "--quiet", "--allow-empty", "--message", message]):
            subprocess.run(["git", *IDENTITY, *command], cwd=tmp_path, check=True)

    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    commit("Record", "1")
    assert accepted(tmp_path / "gates.json") == set()
    commit("Store rows alone, which spills less\n\nAccepts: gfx942: gemm, 1 row\n", "1")
    assert accepted(tmp_path / "gates.json") == {"gfx942: gemm, 1 row"}
    commit("Record again", "2")
    assert accepted(tmp_path / "gates.json") == set()
