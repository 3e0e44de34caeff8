"""The strategies without a model: exhaustive, random, and local search."""

from __future__ import annotations

import numpy as np

from scheduler.tuning.space import Space
from scheduler.tuning.strategies.strategy import History


class ExhaustiveSearch:
    """Every configuration, in the space's order."""

    def propose(self, history: History) -> int | None:
        untried = history.untried
        return int(untried[0]) if untried.size else None


class RandomSearch:
    """Every configuration, in a random order."""

    def __init__(self, space: Space, rng: np.random.Generator) -> None:
        self._order = rng.permutation(len(space))

    def propose(self, history: History) -> int | None:
        """Return the next untried configuration in the order."""
        return next((int(index) for index in self._order if index not in history), None)


class LocalSearch:
    """Iterated local search: tries the best configuration's neighbours, then restarts.

    A start ends when every neighbour of its best configuration was tried; the next start is random.
    Neighbours one value away come first, then any other value of one parameter.
    """

    def __init__(self, space: Space, rng: np.random.Generator) -> None:
        self._space = space
        self._rng = rng
        self._start = 0  # the index in the history at which the present start begins

    def propose(self, history: History) -> int | None:
        """Return a neighbour of the start's best, else a random configuration."""
        recent = list(history)[self._start :]
        timed = [(time, index) for index, time in recent if not np.isnan(time)]
        if timed:
            _, centre = min(timed)
            for reach in (1, len(self._space)):
                around = self._space.neighbours(centre, reach)
                untried = [int(index) for index in around if index not in history]
                if untried:
                    return int(self._rng.choice(untried))
        self._start = len(history)
        untried = [int(index) for index in history.untried]
        return int(self._rng.choice(untried)) if untried else None
