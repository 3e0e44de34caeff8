"""What a detector does with each kind of series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from time import process_time

import numpy as np

from tests.benchmarks.changes.detectors import Stream
from tests.benchmarks.changes.series import KINDS, Array, revisions

LEAST = 8
"""Values before the first look: as many as ours asks for."""
SAME = 5
"""Changes that are no further from each other are one."""
STEPS = (0.02, 0.05, 0.10)
CLEAR = 0.20
STEADY = 200
"""Values of a series in which nothing changes."""
BEFORE, WITHIN = 45, 20
"""Values before a step, and within how many it must be found."""


@dataclass
class Score:
    steady: int = 0
    false: int = 0
    found: dict[float, list[int | None]] = field(
        default_factory=lambda: {step: [] for step in (*STEPS, CLEAR)}
    )
    """Values until each step was found; ``None`` where it was not."""

    @property
    def false_alarms(self) -> float:
        """In 1,000 values."""
        return 1000 * self.false / self.steady

    def share(self, step: float) -> float:
        return sum(runs is not None for runs in self.found[step]) / len(self.found[step])

    def runs(self, step: float) -> float:
        """The median of steps found, and those not found count as more than any."""
        return median(runs if runs is not None else np.inf for runs in self.found[step])

    def add(self, other: Score) -> None:
        self.steady += other.steady
        self.false += other.false
        for step, found in other.found.items():
            self.found[step].extend(found)


def scored(detector: type[Stream], kind: str, series: int, seed: int) -> Score:
    """The same series for each detector."""
    rng = np.random.default_rng([seed, *kind.encode()])
    clear = np.random.default_rng([seed, *kind.encode(), 20])  # that a step more leaves the rest
    score = Score()
    for _ in range(series):
        values = 1000 * np.exp(KINDS[kind](rng, STEADY))
        score.steady += STEADY
        score.false += len(alarms(detector, values, revisions(kind, STEADY), LEAST))
        for step in STEPS:
            score.found[step].append(_found(detector, kind, step, rng))
        score.found[CLEAR].append(_found(detector, kind, CLEAR, clear))
    return score


def alarms(
    detector: type[Stream], values: Array, names: Sequence[str], first: int
) -> list[tuple[int, int]]:
    """What is raised when value ``first`` and later ones are appended: where, and what is named."""
    stream = detector()
    known, raised = stream.fill(values[:first], names[:first]), []
    for at in range(first, len(values)):
        for index in stream.append(float(values[at]), names[at]):
            if all(abs(index - other) > SAME for other in known):
                known.append(index)
                raised.append((at, index))
    return raised


def append_cost(detector: type[Stream], seed: int, n: int = 1000, more: int = 40) -> float:
    """Milliseconds that appending a value takes after ``n``: the median."""
    values = 1000 * np.exp(KINDS["normal"](np.random.default_rng(seed), n + more))
    names = revisions("normal", n + more)
    stream = detector()
    stream.fill(values[:n], names[:n])
    times = []
    for at in range(n, n + more):
        start = process_time()
        stream.append(float(values[at]), names[at])
        times.append(process_time() - start)
    return median(times) * 1000


def _found(detector: type[Stream], kind: str, step: float, rng: np.random.Generator) -> int | None:
    logs = KINDS[kind](rng, BEFORE + WITHIN)
    logs[BEFORE:] += rng.choice([-1, 1]) * np.log1p(step)
    raised = alarms(detector, 1000 * np.exp(logs), revisions(kind, logs.size), BEFORE)
    return next((at - BEFORE + 1 for at, index in raised if index >= BEFORE - SAME), None)
