"""What was found of each problem: how far each result was from the reference, and times. No torch.

A contender is a way to compute a problem: ``kiln`` by its default configurations, ``tuned`` by
those that Kiln's tuner chose here, and torch's ``eager`` and ``compile``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from scheduler.stats.intervals import median_interval

KILN, TUNED, EAGER, COMPILE = "kiln", "tuned", "eager", "compile"
CONTENDERS = (KILN, TUNED, EAGER, COMPILE)
OURS = frozenset({KILN, TUNED})


@dataclass(frozen=True)
class Spread:
    """Microseconds of ``n`` calls: their median with its 95% interval, and their quartiles."""

    median: float
    low: float
    high: float
    first_quartile: float
    third_quartile: float
    n: int


def spread(samples_us: Sequence[float]) -> Spread:
    """Of one contender's samples. Raises ``ValueError`` without samples."""
    found = median_interval(samples_us)
    first, third = np.quantile(np.asarray(samples_us, dtype=np.float64), [0.25, 0.75])
    return Spread(found.median, found.low, found.high, float(first), float(third), found.n)


@dataclass(frozen=True)
class Outcome:
    """One contender at one problem. ``time`` is None where ``wrong`` says why it was not timed;
    ``error`` is NaN where it gave no result, ``made_s`` what making it took."""

    error: float = math.nan
    wrong: str = ""
    time: Spread | None = None
    made_s: float = 0.0


@dataclass(frozen=True)
class Row:
    """A problem. ``flops`` and ``moved_bytes`` are what it needs at least (0: not said); ``bound``
    is the error that every contender may have; ``readings`` are of the GPU, over its rounds."""

    name: str
    flops: float
    moved_bytes: float
    bound: float
    outcomes: Mapping[str, Outcome]
    readings: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def median(self, contender: str) -> float | None:
        """Microseconds; None for one that was not timed."""
        found = self.outcomes.get(contender)
        return None if found is None or found.time is None else found.time.median

    def ratio(self, ours: str, theirs: str) -> float | None:
        """Our time over theirs: below 1 Kiln is faster."""
        times = self.median(ours), self.median(theirs)
        return None if times[0] is None or times[1] is None else times[0] / times[1]

    @property
    def failed(self) -> bool:
        """Whether a kernel of ours was wrong, or there is none."""
        return any(one.wrong for name, one in self.outcomes.items() if name in OURS)


def judged(error: float, bound: float) -> str:
    """Why a result of that error is wrong; "" where it is right."""
    # NaN is within no bound.
    return "" if error <= bound else f"error {error:.2e}, at most {bound:.2e} is right"
