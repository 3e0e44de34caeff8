"""Groups times of trials by the values of one parameter or of two."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from scheduler.tuning.trials.parameters import Parameter


@dataclass(frozen=True)
class TrialOutcome:
    """The result of a trial: its index among the trials, its time (any unit; None if it has none)
    and its state."""

    trial: int
    time: float | None
    state: str


@dataclass(frozen=True)
class TrialGroup:
    """Trials with the same values: ``n`` of them have a time, summarized by the least, the
    quartiles and the most; ``best_trial`` is the index of the fastest. ``others`` counts those
    without a time by state."""

    n: int = 0
    best: float | None = None
    lower: float | None = None
    median: float | None = None
    upper: float | None = None
    worst: float | None = None
    best_trial: int | None = None
    others: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class SliceValue:
    """A value of a parameter, and the trials with that value."""

    value: str
    group: TrialGroup


@dataclass(frozen=True)
class Slice:
    """A parameter, value by value."""

    name: str
    values: tuple[SliceValue, ...]


@dataclass(frozen=True)
class Grid:
    """Two parameters: ``cells[i][j]`` has the trials with the ``i``-th value of ``down`` and the
    ``j``-th of ``across``; None if there is none."""

    across: str
    down: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    cells: tuple[tuple[TrialGroup | None, ...], ...]


def summarize_group(outcomes: Sequence[TrialOutcome]) -> TrialGroup:
    """Summarize these trials."""
    timed = [(outcome.time, outcome.trial) for outcome in outcomes if outcome.time is not None]
    others = Counter(outcome.state for outcome in outcomes if outcome.time is None)
    if not timed:
        return TrialGroup(others=dict(others))
    best, best_trial = min(timed)
    times = [time for time, _ in timed]
    lower, median, upper = (float(outcome) for outcome in np.quantile(times, (0.25, 0.5, 0.75)))
    return TrialGroup(
        len(timed), best, lower, median, upper, max(times), best_trial, dict(sorted(others.items()))
    )


def slice_of(parameter: Parameter, outcomes: Sequence[TrialOutcome]) -> Slice:
    """Group the trials by a parameter's values; ``outcomes`` are in the order of its ``codes``."""
    by_code: dict[int, list[TrialOutcome]] = defaultdict(list)
    for code, outcome in zip(parameter.codes, outcomes, strict=True):
        by_code[code].append(outcome)
    return Slice(
        parameter.name,
        tuple(
            SliceValue(text, summarize_group(by_code[code]))
            for code, text in enumerate(parameter.values)
        ),
    )


def grid_of(across: Parameter, down: Parameter, outcomes: Sequence[TrialOutcome]) -> Grid:
    """Group the trials by two parameters' values."""
    by_cell: dict[tuple[int, int], list[TrialOutcome]] = defaultdict(list)
    for column, row, outcome in zip(across.codes, down.codes, outcomes, strict=True):
        by_cell[row, column].append(outcome)
    cells = tuple(
        tuple(
            summarize_group(by_cell[row, column]) if (row, column) in by_cell else None
            for column in range(len(across.values))
        )
        for row in range(len(down.values))
    )
    return Grid(across.name, down.name, across.values, down.values, cells)
