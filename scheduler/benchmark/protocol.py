"""The timing protocol: warm-up, then rounds interleaved over the candidates that are still in.

Interleaving spreads thermal drift and a neighbour's load over all candidates alike; a batch of
launches stands behind each sample, so that the launch overhead does not rank short kernels.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from scheduler.outcome import Rejected


@dataclass(frozen=True)
class TimingPlan:
    """How long to measure.

    A sample is ``batch`` launches, as many as reach ``min_sample_ns`` (at most ``max_batch``).
    Rounds go on until each candidate has ``max_samples`` or, with at least ``min_samples``, has
    used ``budget_s`` seconds of device time.
    """

    warmup: int = 1
    min_samples: int = 5
    max_samples: int = 30
    min_sample_ns: float = 100_000.0
    max_batch: int = 1000
    budget_s: float = 1.0

    def batch_for(self, single_ns: float) -> int:
        """Launches behind a sample, when one takes this long."""
        if single_ns <= 0:
            return self.max_batch
        return max(1, min(self.max_batch, round(self.min_sample_ns / single_ns)))

    def done(self, seen: Samples) -> bool:
        """Whether a candidate has enough samples."""
        if seen.taken >= self.max_samples:
            return True
        return seen.taken >= self.min_samples and seen.spent_ns >= self.budget_s * 1e9


# Rounds are over in seconds when a kernel is short and its sample cheap; a slow one (an emulated
# GEMM takes a second) must not hold everyone for half an hour.
EMULATION_PLAN = TimingPlan(warmup=1, min_samples=3, max_samples=15, budget_s=0.25, max_batch=64)


@dataclass
class Samples:
    """What was seen of one candidate: nanoseconds a launch, the batch behind each sample."""

    batch: int
    kept: list[float] = field(default_factory=list)
    rejected: list[tuple[float, str]] = field(default_factory=list)
    spent_ns: float = 0.0

    def add(self, total_ns: float, floor_ns: float) -> None:
        """Record one sample of ``batch`` launches; impossible ones are kept apart."""
        self.spent_ns += max(total_ns, 0.0)
        each = total_ns / self.batch
        if total_ns == 0:
            self.rejected.append((each, "zero"))
        elif total_ns < 0:
            self.rejected.append((each, "negative"))
        elif each < floor_ns:
            self.rejected.append((each, f"faster than the hardware can ({floor_ns:.0f} ns)"))
        else:
            self.kept.append(each)

    @property
    def taken(self) -> int:
        """Samples so far, the rejected ones too."""
        return len(self.kept) + len(self.rejected)


Sampler = Callable[[str, int], "float | Rejected"]
"""Run a candidate (by its key) this many times: nanoseconds in total, or how it was lost."""


def run_rounds(
    candidates: Iterable[str],
    sample: Sampler,
    plan: TimingPlan,
    floor_ns: float = 0.0,
    on_round: Callable[[int], None] | None = None,
) -> tuple[dict[str, Samples], dict[str, Rejected]]:
    """Time all candidates together; returns the samples of those that lasted, and the lost."""
    samples: dict[str, Samples] = {}
    lost: dict[str, Rejected] = {}
    for key in candidates:
        warmed = _warm_up(key, sample, plan)
        if isinstance(warmed, Rejected):
            lost[key] = warmed
        else:
            samples[key] = Samples(batch=plan.batch_for(warmed))
    round_number = 0
    while active := [key for key, seen in samples.items() if not plan.done(seen)]:
        for key in active:
            took = sample(key, samples[key].batch)
            if isinstance(took, Rejected):
                lost[key] = took
                del samples[key]
            else:
                samples[key].add(took, floor_ns)
        round_number += 1
        if on_round is not None:
            on_round(round_number)
    return samples, lost


def _warm_up(key: str, sample: Sampler, plan: TimingPlan) -> float | Rejected:
    """The time of one launch after the warm-up, in nanoseconds."""
    took: float | Rejected = 0.0
    for _ in range(max(plan.warmup, 1)):
        took = sample(key, 1)
        if isinstance(took, Rejected):
            return took
    return took


class Stopwatch:
    """Seconds since it was made, on the monotonic clock."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start
