"""What a tuning run may spend: time, compiles, measurements."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from scheduler.outcome import UserError

_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
# Of the time, what is kept for the last rounds: they decide, and nothing compiles beside them.
_FOR_EXPLORING = 0.75


@dataclass(frozen=True)
class Budget:
    """Upper limits; None is no limit. ``compiles`` count what the cache did not hold."""

    seconds: float | None = None
    compiles: int | None = None
    measurements: int | None = None


def parse_seconds(text: str) -> float:
    """``60s``, ``5m``, ``1.5h``, or a plain number of seconds. Raises ``UserError``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|min|m|h)?", text.strip())
    if not match or float(match[1]) == 0:
        raise UserError(f"budget {text!r}: write a time such as 60s, 5m or 1h")
    return float(match[1]) * _UNITS[match[2] or "s"]


class Meter:
    """What was spent of a budget so far. ``clock`` gives seconds from any fixed start."""

    def __init__(self, budget: Budget, clock: Callable[[], float] = time.monotonic) -> None:
        self.budget = budget
        self.compiles = 0
        self.measurements = 0
        self._clock = clock
        self._start = clock()

    @property
    def seconds(self) -> float:
        return self._clock() - self._start

    @property
    def left_s(self) -> float:
        """Seconds to the end; infinite without a limit."""
        limit = self.budget.seconds
        return float("inf") if limit is None else max(0.0, limit - self.seconds)

    @property
    def exploring_left_s(self) -> float:
        """Seconds in which new candidates are still tried."""
        limit = self.budget.seconds
        return float("inf") if limit is None else _FOR_EXPLORING * limit - self.seconds

    def no_more_compiles(self) -> str:
        """Which limit forbids another compile; "" where none does."""
        limit = self.budget.compiles
        if limit is not None and self.compiles >= limit:
            return f"the budget of {limit} compiles was spent"
        return self._no_more_time()

    def no_more_measurements(self) -> str:
        """Which limit forbids trying another candidate; "" where none does."""
        limit = self.budget.measurements
        if limit is not None and self.measurements >= limit:
            return f"the budget of {limit} measurements was spent"
        return self._no_more_time()

    def _no_more_time(self) -> str:
        if self.exploring_left_s <= 0:
            return f"the budget of {self.budget.seconds:g} s was spent"
        return ""
