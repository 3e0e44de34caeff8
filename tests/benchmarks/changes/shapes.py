"""Series as performance data are, with their changes labelled: held out, no parameter is chosen
by them.

Unlike ``series.py``'s kinds, which hold one noise or one step, each of these mixes what comes
together in histories of real programs: regressions that are backed out, stairs of improvements,
spikes beside modes, ticks, runs of a revision of which some are missing, levels that wander.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.benchmarks.changes.series import Array, Generator


@dataclass(frozen=True)
class Labelled:
    values: Array
    changes: tuple[int, ...] = ()
    revisions: tuple[str, ...] = ()


Shape = Callable[[Generator], Labelled]


def backed_out(rng: Generator) -> Labelled:
    """A regression of 5 to 12%, gone again after 15 to 35 values; some spikes."""
    n, start = 120, int(rng.integers(35, 60))
    end = start + int(rng.integers(15, 36))
    logs = rng.normal(0, 0.012, n) + (rng.random(n) < 0.03) * rng.exponential(0.1, n)
    logs[start:end] += rng.uniform(0.05, 0.12)
    return Labelled(7.4 * np.exp(logs), (start, end))


def stairs(rng: Generator) -> Labelled:
    """Three improvements of 4 to 8%, 30 to 45 values from each other; heavy tails."""
    places = np.cumsum(rng.integers(30, 46, 3))
    n = int(places[-1]) + 40
    logs = 0.008 * rng.standard_t(4, n)
    for place in places:
        logs[place:] -= rng.uniform(0.04, 0.08)
    return Labelled(312.0 * np.exp(logs), tuple(int(place) for place in places))


def slow_and_fast(rng: Generator) -> Labelled:
    """A fifth of the runs takes 6% longer, as code placed otherwise does; everything then 8%."""
    n, start = 110, int(rng.integers(40, 70))
    logs = rng.normal(0, 0.006, n) + (rng.random(n) < 0.2) * 0.06
    logs[start:] += 0.08
    return Labelled(0.0131 * np.exp(logs), (start,))


def share_of_slow(rng: Generator) -> Labelled:
    """As many slow runs as ever, but never alike: nothing changes."""
    n = 150
    slow = rng.random(n) < np.repeat(rng.uniform(0.1, 0.3, 5), 30)
    return Labelled(88.0 * np.exp(rng.normal(0, 0.007, n) + slow * rng.uniform(0.03, 0.08)))


def milliseconds(rng: Generator) -> Labelled:
    """Whole milliseconds, about 40 of them; slower by three."""
    n, start = 100, int(rng.integers(35, 65))
    level = np.where(np.arange(n) < start, 40.3, 43.4)
    return Labelled(np.round(level + rng.normal(0, 0.6, n)), (start,))


def missing_runs(rng: Generator) -> Labelled:
    """One to four runs of a revision, which have something in common; then slower by 6 to 10%."""
    counts = rng.integers(1, 5, 45)
    first = int(rng.integers(20, 30))
    names = np.repeat(np.arange(45), counts)
    logs = rng.normal(0, 0.008, names.size) + np.repeat(rng.normal(0, 0.006, 45), counts)
    start = int(counts[:first].sum())
    logs[start:] += rng.uniform(0.06, 0.10)
    return Labelled(1450.0 * np.exp(logs), (start,), tuple(str(name) for name in names))


def wandering(rng: Generator) -> Labelled:
    """The machine warms and cools by a percent in some twenty values: nothing changes."""
    n = 150
    places = np.arange(n) / rng.uniform(18, 30) + rng.uniform(0, 1)
    return Labelled(59.0 * np.exp(rng.normal(0, 0.01, n) + 0.01 * np.sin(2 * np.pi * places)))


def drifting_and_slower(rng: Generator) -> Labelled:
    """3% less in 100 values, and a regression of 6 to 9% on the way."""
    n, start = 120, int(rng.integers(50, 80))
    logs = rng.normal(0, 0.01, n) - 0.0003 * np.arange(n)
    logs[start:] += rng.uniform(0.06, 0.09)
    return Labelled(2.2 * np.exp(logs), (start,))


def noisier(rng: Generator) -> Labelled:
    """Three times the noise from some value on: no other level."""
    n, start = 120, int(rng.integers(40, 70))
    logs = rng.normal(0, 0.008, n) * np.where(np.arange(n) < start, 1.0, 3.0)
    return Labelled(640.0 * np.exp(logs))


def few(rng: Generator) -> Labelled:
    """Too few values to say anything, whatever they are."""
    return Labelled(5.0 * np.exp(rng.normal(0, 0.1, int(rng.integers(1, 9)))))


SHAPES: tuple[Shape, ...] = (
    backed_out, stairs, slow_and_fast, share_of_slow, milliseconds, missing_runs, wandering,
    drifting_and_slower, noisier, few,
)  # fmt: skip
