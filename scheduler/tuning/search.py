"""The order in which one problem's candidates are tried: an ask-and-tell interface."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from scheduler.codegen.kernel import ConfigValue
from scheduler.tuning.space import TEMPLATE, Space
from scheduler.tuning.strategies.registry import DEFAULT_STRATEGY, find_strategy
from scheduler.tuning.strategies.strategy import History


class Search:
    """Asks a strategy for candidates while earlier ones are still being built.

    The default comes first, then the configurations that won on similar problems, then the
    strategy's proposals. The strategy sees a pending candidate as one with the median time (the
    "constant liar", Ginsbourger and others, 2010), so that it does not propose its neighbours
    before its time is known. The proposals depend only on the results, not on when they were
    told. ``strategy`` is a name of the registry; any other raises ``UserError``.
    """

    def __init__(
        self,
        configs: Sequence[Mapping[str, ConfigValue]],
        rng: np.random.Generator,
        expected_ns: Sequence[float] | None = None,
        first: Iterable[Mapping[str, ConfigValue]] = (),
        strategy: str = DEFAULT_STRATEGY,
    ) -> None:
        self._size = len(configs)
        space = Space(tuple(configs))
        self._strategy = find_strategy(strategy).make(space, rng, expected_ns)
        first_indices = (
            index
            for first_config in first
            for index, config in enumerate(configs)
            if _is_same(first_config, config)
        )
        self._first = list(dict.fromkeys([0, *first_indices]))
        self._results: dict[int, float] = {}
        self._pending: dict[int, None] = {}

    def ask(self) -> int | None:
        """Return the index of the next candidate to try; None if all were returned."""
        if self._first:
            index: int | None = self._first.pop(0)
        else:
            index = self._strategy.propose(self._history())
        if index is not None:
            self._pending[index] = None
        return index

    def tell(self, index: int, time_ns: float | None) -> None:
        """Record a candidate's result: its time, or None if it was rejected or postponed."""
        self._pending.pop(index, None)
        self._results[index] = float("nan") if time_ns is None else time_ns

    def _history(self) -> History:
        history = History(self._size)
        for index, time in self._results.items():
            history.add(index, time)
        timed = [time for time in self._results.values() if not np.isnan(time)]
        median_time = float(np.median(timed)) if timed else float("nan")
        for index in self._pending:
            history.add(index, median_time)
        return history


def _is_same(config: Mapping[str, ConfigValue], other: Mapping[str, ConfigValue]) -> bool:
    """Whether two configurations are the same; if both name a template, the templates too."""
    if TEMPLATE in config and TEMPLATE in other:
        return dict(config) == dict(other)
    ones, others = (
        {name: value for name, value in each_config.items() if name != TEMPLATE}
        for each_config in (config, other)
    )
    return ones == others
