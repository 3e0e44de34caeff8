"""The timing protocol: what is kept, what is thrown out, and how candidates share the rounds."""

from __future__ import annotations

from scheduler.benchmark.protocol import Samples, TimingPlan, run_rounds
from scheduler.outcome import Rejected, Stage

PLAN = TimingPlan(warmup=2, min_samples=3, max_samples=5, min_sample_ns=100.0, budget_s=1e-6)


class Clock:
    """A device whose launches take a fixed time; it remembers who was asked, in order."""

    def __init__(self, times: dict[str, float]) -> None:
        self.times = times
        self.asked: list[tuple[str, int]] = []

    def __call__(self, key: str, batch: int) -> float | Rejected:
        self.asked.append((key, batch))
        return self.times[key] * batch


def test_candidates_are_interleaved_round_by_round() -> None:
    clock = Clock({"a": 10.0, "b": 20.0})
    run_rounds(["a", "b"], clock, PLAN)
    timed = [key for key, batch in clock.asked if batch > 1]
    assert timed[:6] == ["a", "b", "a", "b", "a", "b"]


def test_short_kernels_are_timed_in_batches_that_reach_the_least_sample() -> None:
    samples, _ = run_rounds(["a"], Clock({"a": 10.0}), PLAN)
    assert samples["a"].batch == 10
    assert samples["a"].kept[0] == 10.0  # a launch, not a batch


def test_every_sample_is_kept_until_the_plan_is_met() -> None:
    samples, lost = run_rounds(["a"], Clock({"a": 10.0}), PLAN)
    assert not lost
    assert len(samples["a"].kept) == 5  # the budget is not used up, so up to max_samples


def test_a_slow_kernel_stops_at_its_budget_but_not_before_the_least_samples() -> None:
    samples, _ = run_rounds(["a"], Clock({"a": 1e9}), PLAN)
    assert len(samples["a"].kept) == 3


def test_impossible_samples_are_kept_apart_with_their_reason() -> None:
    seen = Samples(batch=2)
    for total in (0.0, -4.0, 10.0, 100.0):
        seen.add(total, floor_ns=20.0)
    assert seen.kept == [50.0]
    assert [reason.split()[0] for _, reason in seen.rejected] == ["zero", "negative", "faster"]


def test_a_candidate_that_is_lost_leaves_the_others_in() -> None:
    crash = Rejected(Stage.CRASH, "killed by SIGSEGV")

    def sample(key: str, batch: int) -> float | Rejected:
        calls[key] = calls.get(key, 0) + 1
        return crash if key == "bad" and calls[key] > 3 else 50.0 * batch

    calls: dict[str, int] = {}
    samples, lost = run_rounds(["good", "bad"], sample, PLAN)
    assert lost == {"bad": crash}
    assert len(samples["good"].kept) == 5


def test_rounds_end_even_when_every_sample_is_impossible() -> None:
    samples, _ = run_rounds(["a"], Clock({"a": 10.0}), PLAN, floor_ns=1000.0)
    assert samples["a"].kept == []
    assert samples["a"].taken == PLAN.max_samples
