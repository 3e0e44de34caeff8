"""The strategies that need no model: everything in order, at random, and from good to better."""

from __future__ import annotations

import numpy as np

from scheduler.tuning.space import Space
from scheduler.tuning.strategies.strategy import History


class ExhaustiveSearch:
    """Every configuration, in the space's order."""

    def propose(self, history: History) -> int | None:
        left = history.untried
        return int(left[0]) if left.size else None


class RandomSearch:
    """Every configuration, in a random order."""

    def __init__(self, space: Space, rng: np.random.Generator) -> None:
        self._order = rng.permutation(len(space))

    def propose(self, history: History) -> int | None:
        """The next in the order that was not tried."""
        return next((int(index) for index in self._order if index not in history), None)


class LocalSearch:
    """Iterated local search: the best one's neighbours, and a fresh start where none is left.

    A start is over when every neighbour of its best configuration was tried; the next start is
    random. Neighbours that are one value away come first, then any other value of one parameter.
    """

    def __init__(self, space: Space, rng: np.random.Generator) -> None:
        self._space = space
        self._rng = rng
        self._start = 0  # where in the history the present start begins

    def propose(self, history: History) -> int | None:
        """A neighbour of the start's best, else a random configuration."""
        centre = self._best_of_start(history)
        if centre is not None:
            for reach in (1, len(self._space)):
                around = self._space.neighbours(centre, reach)
                left = [int(index) for index in around if index not in history]
                if left:
                    return int(self._rng.choice(left))
        self._start = len(history)
        left = [int(index) for index in history.untried]
        return int(self._rng.choice(left)) if left else None

    def _best_of_start(self, history: History) -> int | None:
        recent = list(history)[self._start :]
        seen = [(time, index) for index, time in recent if not np.isnan(time)]
        return min(seen)[1] if seen else None
