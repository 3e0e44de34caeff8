"""The search strategies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from scheduler.errors import UserError
from scheduler.tuning.space import Space
from scheduler.tuning.strategies.guided import GuidedSearch
from scheduler.tuning.strategies.simple import ExhaustiveSearch, LocalSearch, RandomSearch
from scheduler.tuning.strategies.strategy import Strategy

StrategyFactory: TypeAlias = Callable[
    [Space, np.random.Generator, Sequence[float] | None], Strategy
]
"""Makes a strategy for a space, from a random generator and the cost model's time of each
configuration in nanoseconds (None without a cost model)."""


@dataclass(frozen=True)
class StrategyRow:
    """A selectable strategy; ``summary`` is its one-line description."""

    summary: str
    make: StrategyFactory


STRATEGIES: Mapping[str, StrategyRow] = {
    "guided": StrategyRow("Gaussian process and cost model", GuidedSearch),
    "local": StrategyRow("iterated local search", lambda space, rng, _: LocalSearch(space, rng)),
    "random": StrategyRow("random order", lambda space, rng, _: RandomSearch(space, rng)),
    "exhaustive": StrategyRow("all candidates in order", lambda *_: ExhaustiveSearch()),
}
DEFAULT_STRATEGY = "guided"


def find_strategy(name: str) -> StrategyRow:
    """Return the row of that name. Raises ``UserError`` that lists the known names."""
    row = STRATEGIES.get(name)
    if row is None:
        raise UserError(f"unknown search strategy {name!r}; known: {', '.join(STRATEGIES)}")
    return row
