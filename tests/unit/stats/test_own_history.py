"""The kernels of the project's own commits, as an H200 timed them, six runs a commit."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

import scheduler
from scheduler.results import file as results_file
from scheduler.results.model import Results
from scheduler.stats.changes import find_changes

RESULTS = Path(scheduler.__file__).parent / "samples" / "results"
# The commits since cf2eae8 that changed the HIP kernels of plain linear layers: it copied tiles
# asynchronously by default, 3333c9c lost that in a merge, and 1c33004 put it back.
COPIED, LOST, BACK = "cf2eae8", "3333c9c", "1c33004"


@pytest.fixture(scope="module")
def recorded() -> Results:
    """Read once: it takes longer than all else here."""
    return results_file.read(RESULTS / "history-llama_2layer-h200.json.xz")


@pytest.mark.full
@pytest.mark.parametrize("title", ["linear(2048x512, 512x4000)", "linear(2048x1376, 1376x512)"])
def test_a_commit_that_lost_a_gain_and_the_one_that_brought_it_back_are_both_found(
    title: str, recorded: Results
) -> None:
    values, commits = _measured(recorded, title)
    found = {
        commits[one.index][:7]: one.ratio
        for _, one in find_changes(values, commits)
        if abs(one.ratio - 1) > 0.3
    }
    assert list(found) == [COPIED, LOST, BACK]
    assert found[COPIED] < 0.65
    assert found[LOST] > 1.55
    assert found[BACK] == pytest.approx(1 / found[LOST], rel=0.05)


def _measured(recorded: Results, title: str) -> tuple[list[float], list[str]]:
    """A value each run, in the order of the commits."""
    found = []
    for run in recorded.runs:
        assert run.revision is not None
        for task in run.tasks:
            (one,) = task.candidates
            if task.title.startswith(title) and one.timed and one.kernel.startswith("rocm_"):
                at = (run.revision.date, run.started_at)
                found.append((at, median(one.timed.samples_ns), run.revision.commit))
    found.sort()
    return [value for _, value, _ in found], [commit for _, _, commit in found]
