"""The timing protocol: launches per sample, number of samples, and which samples are valid.

Each sample is a batch of launches, so that the launch overhead does not rank short kernels.
``tuning/halving.py`` takes the samples, in rounds interleaved over the candidates.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from scheduler.errors import Rejected
from scheduler.runtime.device import Timing


@dataclass(frozen=True)
class TimingPlan:
    """How long to measure.

    A sample is as many launches as reach ``min_sample_ns`` (at most ``max_batch``).
    Rounds continue until each candidate has ``max_samples`` or, with at least ``min_samples``, has
    used ``budget_s`` seconds of device time.
    """

    min_samples: int = 5
    max_samples: int = 30
    min_sample_ns: float = 100_000.0
    max_batch: int = 1000
    budget_s: float = 1.0

    def batch_for(self, single_ns: float) -> int:
        """Return the number of launches per sample, if one launch takes ``single_ns``."""
        if single_ns <= 0:
            return self.max_batch
        return max(1, min(self.max_batch, round(self.min_sample_ns / single_ns)))

    def done(self, samples: Samples) -> bool:
        """Whether a candidate has enough samples."""
        if samples.count >= self.max_samples:
            return True
        return samples.count >= self.min_samples and samples.spent_ns >= self.budget_s * 1e9


# Rounds of short kernels end within seconds; a slow kernel (an emulated GEMM takes a second) must
# not delay all candidates by half an hour.
EMULATION_PLAN = TimingPlan(min_samples=3, max_samples=15, budget_s=0.25, max_batch=64)


def default_plan(emulated: bool) -> TimingPlan:
    """Return the default timing plan of a device of that kind."""
    return EMULATION_PLAN if emulated else TimingPlan()


@dataclass
class Samples:
    """The samples of one candidate: nanoseconds per launch, the batch of each sample, and the
    device's telemetry, one value for each valid sample."""

    batch: int
    valid_ns: list[float] = field(default_factory=list)
    readings: dict[str, list[float]] = field(default_factory=dict)
    rejected: list[tuple[float, str]] = field(default_factory=list)
    spent_ns: float = 0.0

    def add(self, timing: Timing, floor_ns: float) -> None:
        """Record one sample of ``batch`` launches; impossible ones go to ``rejected``."""
        total_ns = timing.total_ns
        self.spent_ns += max(total_ns, 0.0)
        launch_ns = total_ns / self.batch
        if total_ns == 0:
            self.rejected.append((launch_ns, "zero"))
        elif total_ns < 0:
            self.rejected.append((launch_ns, "negative"))
        elif launch_ns < floor_ns:
            self.rejected.append((launch_ns, f"faster than the hardware can ({floor_ns:.0f} ns)"))
        else:
            self.valid_ns.append(launch_ns)
            for name, value in timing.readings.items():
                self.readings.setdefault(name, []).append(value)

    @property
    def count(self) -> int:
        """The number of samples so far, including rejected samples."""
        return len(self.valid_ns) + len(self.rejected)

    @property
    def median_ns(self) -> float:
        """Median nanoseconds per launch; infinite if every sample was impossible."""
        return float(np.median(self.valid_ns)) if self.valid_ns else float("inf")


Sampler: TypeAlias = Callable[[str, int], Timing | Rejected]
"""Runs a candidate (by its key) this many times; returns the time or the rejection."""


class Stopwatch:
    """Seconds since it was made, on the monotonic clock."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def seconds(self) -> float:
        return time.monotonic() - self._start
