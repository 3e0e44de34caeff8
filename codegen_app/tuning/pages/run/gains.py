"""What a run gained: its best kernels beside the selected ones that they replaced, and beside the
default ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from codegen_app.tuning.models import BenchmarkResult, Candidate, Selection
from codegen_app.tuning.services.selections import fastest_in
from scheduler.track.ratios import MedianRatio, ratio_of_sums

_Pair = tuple[BenchmarkResult, BenchmarkResult]


@dataclass(frozen=True)
class RunSelection:
    """A selection that the run made. ``previous`` is the number of the one that it replaced, None
    if no kernel was selected before; ``is_current``: it was not replaced since."""

    id: int
    is_current: bool
    previous: int | None
    previous_kernel: str
    previous_kernel_url: str

    @property
    def can_be_put_back(self) -> bool:
        """Whether the previous selection can be restored."""
        return self.is_current and self.previous is not None


@dataclass(frozen=True)
class Gain:
    """The best kernels of some problems beside others that the same run measured, in those problems
    in which both have enough samples: ``change`` is the sum of their medians over that of the
    others; None if they have too few everywhere."""

    problems: int
    before_ns: float
    after_ns: float
    change: MedianRatio | None


@dataclass(frozen=True)
class ProblemGain:
    """The selection that the run made for a problem, and the gain over the replaced kernel and over
    the default one; None for a kernel that the run did not measure, or that is the best one."""

    selection: RunSelection | None = None
    over_previous: Gain | None = None
    over_default: Gain | None = None


@dataclass(frozen=True)
class RunGains:
    """The gains by chosen candidate, and those of all problems together."""

    by_candidate: Mapping[int, ProblemGain]
    over_previous: Gain | None
    over_default: Gain | None


def run_gains(
    run: int, candidates: Collection[Candidate], selections: Collection[Selection]
) -> RunGains:
    """Return what a run gained, without a query; ``selections`` are those of its problems, current
    or replaced since the run."""
    ended = {(row.bucket_key, row.until): row for row in selections if row.until is not None}
    by_run = {
        (row.problem_id, row.kernel_id): (row, ended.get((row.bucket_key, row.since)))
        for row in selections
        if row.reason == fastest_in(f"run {run}")
    }
    measured = {(row.task_id, row.kernel_id): row.result for row in candidates if row.result}
    defaults = {row.task_id: row.result for row in candidates if row.position == 0}
    gains, replaced, unlike_default = {}, [], []
    for row in candidates:
        if not row.chosen or row.result is None or row.kernel_id is None:
            continue
        selection, previous = by_run.get((row.task.problem_id, row.kernel_id), (None, None))
        known = measured.get((row.task_id, previous.kernel_id)) if previous else None
        of_previous = [(known, row.result)] if known else []
        default = defaults.get(row.task_id)
        of_default = [(default, row.result)] if default and default != row.result else []
        gains[row.pk] = ProblemGain(
            selection=_run_selection(selection, previous) if selection else None,
            over_previous=_gain(of_previous),
            over_default=_gain(of_default),
        )
        replaced += of_previous
        unlike_default += of_default
    return RunGains(gains, _gain(replaced), _gain(unlike_default))


def _run_selection(selection: Selection, previous: Selection | None) -> RunSelection:
    return RunSelection(
        id=selection.pk,
        is_current=selection.until is None,
        previous=previous.pk if previous else None,
        previous_kernel=previous.kernel.name if previous else "",
        previous_kernel_url=previous.kernel.get_absolute_url() if previous else "",
    )


def _gain(pairs: Sequence[_Pair]) -> Gain | None:
    """Return the gain of the pairs with enough samples each; of all, without a ratio, if there are
    none with enough."""
    if not pairs:
        return None
    pairs = [pair for pair in pairs if ratio_of_sums(*([row.samples_ns] for row in pair))] or pairs
    before, after = [[pair[side] for pair in pairs] for side in (0, 1)]
    samples = [[result.samples_ns for result in side] for side in (before, after)]
    return Gain(
        problems=len(pairs),
        before_ns=sum(result.median_ns for result in before),
        after_ns=sum(result.median_ns for result in after),
        change=ratio_of_sums(*samples),
    )
