"""The timing protocol: which samples count, and when there are enough."""

from __future__ import annotations

import pytest

from scheduler.benchmark.timing import Samples, TimingPlan
from scheduler.runtime.device import Timing

PLAN = TimingPlan(min_samples=3, max_samples=5, min_sample_ns=100.0, budget_s=1e-6)


@pytest.mark.parametrize(("each_ns", "due"), [(10.0, 5), (1e9, 3)])
def test_a_slow_kernel_is_done_at_its_budget_but_not_before_the_least_samples(
    each_ns: float, due: int
) -> None:
    seen = Samples(batch=1)
    while not PLAN.done(seen):
        seen.add(Timing(each_ns), floor_ns=0.0)
    assert len(seen.valid_ns) == due


def test_it_is_done_even_when_every_sample_is_impossible() -> None:
    seen = Samples(batch=1)
    while not PLAN.done(seen):
        seen.add(Timing(10.0), floor_ns=1000.0)
    assert seen.valid_ns == []
    assert seen.count == PLAN.max_samples


def test_impossible_samples_are_rejected_with_their_reason() -> None:
    seen = Samples(batch=2)
    for total in (0.0, -4.0, 10.0, 100.0):
        seen.add(Timing(total), floor_ns=20.0)
    assert seen.valid_ns == [50.0]
    assert [reason.split()[0] for _, reason in seen.rejected] == ["zero", "negative", "faster"]
