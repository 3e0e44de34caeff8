"""The interface of a strategy: proposes the next configuration from the history of results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt


class History:
    """The tried configurations: indices into the space, and times, in the order of trying.

    Times are in any one unit; nan marks a configuration without a time (it failed).
    """

    def __init__(self, size: int) -> None:
        self.tried: list[int] = []
        self.times: list[float] = []
        self._open = np.ones(size, dtype=bool)

    def add(self, index: int, time: float) -> None:
        """Add a result. Raises ``ValueError`` for a configuration that was tried before."""
        if not self._open[index]:
            raise ValueError(f"configuration {index} was tried before")
        self._open[index] = False
        self.tried.append(index)
        self.times.append(time)

    @property
    def untried(self) -> npt.NDArray[np.int64]:
        """The untried indices, ascending."""
        return np.flatnonzero(self._open)

    @property
    def best(self) -> tuple[int, float] | None:
        """The fastest so far; of equals the one tried first. None before the first success."""
        fastest: tuple[int, float] | None = None
        for index, time in self:
            if not np.isnan(time) and (fastest is None or time < fastest[1]):
                fastest = index, time
        return fastest

    def __iter__(self) -> Iterator[tuple[int, float]]:
        return iter(zip(self.tried, self.times, strict=True))

    def __len__(self) -> int:
        return len(self.tried)

    def __contains__(self, index: int) -> bool:
        return not self._open[index]


class Strategy(Protocol):
    """Chooses what to try next; deterministic for a given seed."""

    def propose(self, history: History) -> int | None:
        """Return an index that was not tried yet; None when the space is used up."""
