"""Halving: the rounds go to those that may still win, and rejections are kept."""

from __future__ import annotations

from collections import Counter

from scheduler.benchmark.timing import Samples, TimingPlan
from scheduler.errors import Rejected, Stage
from scheduler.runtime.device import Timing
from scheduler.tuning.halving import halve, screen

PLAN = TimingPlan(min_samples=3, max_samples=40, min_sample_ns=1.0, budget_s=0.0)
LONG = TimingPlan(min_samples=3, max_samples=24, min_sample_ns=1.0, budget_s=10.0)


def never(_: str) -> bool:
    """No reason to stop."""
    return False


def test_the_slow_half_gets_fewer_samples() -> None:
    count: Counter[str] = Counter()

    def sample(key: str, batch: int) -> Timing:
        count[key] += 1
        return Timing(100.0 * int(key) * batch)

    keys = {str(number): Samples(1) for number in range(1, 9)}
    halved = halve(keys, sample, LONG, 0.0, never)
    assert count["8"] == count["5"] == 3
    assert count["3"] == count["4"] == 9
    assert count["1"] == count["2"] == 24
    assert not halved.rejected
    assert all(len(halved.samples[key].valid_ns) == count[key] for key in keys)


def test_a_candidate_to_compare_with_is_timed_until_the_end() -> None:
    count: Counter[str] = Counter()

    def sample(key: str, batch: int) -> Timing:
        count[key] += 1
        return Timing(100.0 * int(key) * batch)

    keys = {str(number): Samples(1) for number in range(1, 9)}
    halve(keys, sample, LONG, 0.0, never, keep={"8"})
    assert count["1"] == count["2"] == count["8"] == 24
    assert count["7"] == 3


def test_one_that_is_rejected_on_the_way_is_out_and_the_others_go_on() -> None:
    def sample(key: str, batch: int) -> Timing | Rejected:
        return Rejected(Stage.CRASH, "gone") if key == "a" else Timing(5.0)

    halved = halve({"a": Samples(1), "b": Samples(1)}, sample, PLAN, 0.0, never)
    assert list(halved.samples) == ["b"]
    assert halved.rejected["a"].reason == "gone"


def test_it_stops_at_once_when_asked_to() -> None:
    asked: list[str] = []

    def stop(key: str) -> bool:
        asked.append(key)
        return len(asked) > 2

    halved = halve({k: Samples(1) for k in "abcd"}, lambda k, b: Timing(1.0), PLAN, 0.0, stop)
    assert sum(seen.count for seen in halved.samples.values()) == 2


def test_impossible_samples_do_not_win() -> None:
    times = {"honest": 50.0, "impossible": 1.0}
    halved = halve({k: Samples(1) for k in times}, lambda k, b: Timing(times[k]), PLAN, 10.0, never)
    assert not halved.samples["impossible"].valid_ns
    assert halved.samples["honest"].valid_ns


def test_a_launch_that_alone_takes_the_time_is_the_sample() -> None:
    calls: list[int] = []

    def slow(key: str, batch: int) -> Timing:
        calls.append(batch)
        return Timing(3e9)

    seen = screen("slow", slow, TimingPlan(budget_s=0.1), 0.0)
    assert isinstance(seen, Samples)
    assert seen.valid_ns == [3e9]
    assert calls == [1]


def test_a_short_launch_is_batched() -> None:
    seen = screen("fast", lambda k, b: Timing(100.0 * b), TimingPlan(min_sample_ns=1000.0), 0.0)
    assert isinstance(seen, Samples)
    assert seen.batch == 10
    assert set(seen.valid_ns) == {100.0}


def test_candidates_are_interleaved_so_that_drift_meets_all_alike() -> None:
    asked: list[str] = []

    def sample(key: str, batch: int) -> Timing:
        asked.append(key)
        return Timing(10.0)

    halve({"a": Samples(1), "b": Samples(1)}, sample, PLAN, 0.0, never)
    assert asked == ["a", "b"] * 3
