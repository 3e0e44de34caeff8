"""What is in the database: repositories whose series are measured at each of their revisions.

Nothing of it was measured anywhere. Levels, noise and steps are drawn, so that each change stands
where the points step and each alert's changes are of its revision.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

import numpy as np
import numpy.typing as npt

SAMPLES = 20
NOISE = 0.004
_DAYS = 700
_LARGEST_STEP = 0.3

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Suite:
    """A repository: ``n_series`` series, each with a point at each of ``n_revisions``. So many of
    the revisions made something slower, so many something faster, of ``widest`` series at most."""

    name: str
    first_series: int
    n_series: int
    n_revisions: int
    slower: int
    faster: int
    widest: int

    @cached_property
    def steps(self) -> Floats:
        """What each series' logarithm of time grows by at each revision (revision, series)."""
        rng = np.random.default_rng([self.first_series, self.n_series])
        steps = np.zeros((self.n_revisions, self.n_series))
        for count, sign in ((self.slower, 1.0), (self.faster, -1.0)):
            room = max(self.n_revisions - 10, 1)
            for revision in 5 + rng.choice(room, min(count, room), replace=False):
                if revision >= self.n_revisions:
                    continue
                wide = min(1 + int(rng.geometric(2.0 / (1 + self.widest))), self.n_series)
                chosen = rng.choice(self.n_series, wide, replace=False)
                free = chosen[steps[revision, chosen] == 0]
                steps[revision, free] = sign * rng.uniform(0.03, _LARGEST_STEP, len(free))
        return steps

    @cached_property
    def levels(self) -> Floats:
        """The level of each series at each revision in ns (revision, series)."""
        rng = np.random.default_rng([self.n_series, self.first_series])
        start = rng.uniform(7, 14, self.n_series)
        return np.exp(start + np.cumsum(self.steps, axis=0))

    @cached_property
    def epochs(self) -> npt.NDArray[np.int32]:
        """How often each series had changed at each revision (revision, series)."""
        return np.cumsum(self.steps != 0, axis=0, dtype=np.int32)

    @cached_property
    def first_conditions(self) -> Ints:
        """Of each series, how many epochs the series of the suite before it have."""
        counts = self.epochs[-1].astype(np.int64) + 1
        return np.concatenate([[0], np.cumsum(counts)])

    def samples(self, revision: int, seed: int) -> Floats:
        """The sorted samples of each series at a revision in ns (series, sample)."""
        rng = np.random.default_rng([seed, revision])
        drawn = rng.standard_normal((self.n_series, SAMPLES), dtype=np.float32)
        made = np.sort(self.levels[revision][:, None] * (1 + NOISE * drawn), axis=1)
        return np.round(made, 1)


@dataclass(frozen=True)
class Visit:
    """A suite is measured at a revision; ``number`` counts revisions of all suites by time."""

    number: int
    suite: int
    revision: int
    at: datetime


@dataclass(frozen=True)
class Content:
    """All suites, and when each of their revisions was made."""

    suites: tuple[Suite, ...]
    visits: tuple[Visit, ...]

    @property
    def points(self) -> int:
        """Of all series."""
        return sum(suite.n_series * suite.n_revisions for suite in self.suites)


def content(scale: float = 1.0) -> Content:
    """10,000,000 points at a scale of 1: 400 series of 5,000 points in one repository, 49,600 of
    161 or so in sixteen more. A smaller scale has fewer revisions, and as many series."""
    deep = Suite("kernels", 0, 400, *_scaled(scale, 5_000, 4_000, 3_000), widest=3)
    wide = tuple(
        Suite(f"suite-{n:02}", 400 + 3_100 * n, 3_100, *_scaled(scale, 161 + (n < 5), 113, 69), 30)
        for n in range(16)
    )
    suites = (deep, *wide)
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    moments = []
    for number, suite in enumerate(suites):
        for revision in range(suite.n_revisions):
            age = _DAYS * (1 - (revision + 0.06 * number) / suite.n_revisions)
            moments.append((now - timedelta(days=age, hours=1), number, revision))
    moments.sort()
    visits = tuple(Visit(n, suite, revision, at) for n, (at, suite, revision) in enumerate(moments))
    return Content(suites, visits)


def _scaled(scale: float, revisions: int, slower: int, faster: int) -> tuple[int, int, int]:
    first, second, third = (max(int(n * scale), 2) for n in (revisions, slower, faster))
    return first, second, third
