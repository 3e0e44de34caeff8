"""The budget of a tuning run: time, compiles, measurements."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from scheduler.errors import UserError

_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
# The share of the time for trying candidates. The rest is for the last rounds, which decide while
# nothing compiles.
_EXPLORE_SHARE = 0.75


@dataclass(frozen=True)
class Budget:
    """Upper limits; None is no limit. ``compiles`` counts builds that the cache did not hold."""

    seconds: float | None = None
    compiles: int | None = None
    measurements: int | None = None


def parse_seconds(text: str) -> float:
    """Parse ``60s``, ``5m``, ``1.5h``, or a plain number of seconds. Raises ``UserError``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|min|m|h)?", text.strip())
    if not match or float(match[1]) == 0:
        raise UserError(f"budget {text!r}: write a time such as 60s, 5m or 1h")
    return float(match[1]) * _UNITS[match[2] or "s"]


class Meter:
    """What a run has spent of its budget. ``clock`` gives seconds from any fixed start; unless
    ``waiting_counts``, it stands still while there is nothing to measure."""

    def __init__(
        self,
        budget: Budget,
        clock: Callable[[], float] = time.monotonic,
        *,
        waiting_counts: bool = True,
    ) -> None:
        self.budget = budget
        self._waiting_counts = waiting_counts
        self.compiles = 0
        self.measurements = 0
        self._clock = clock
        self._start = clock()

    @property
    def seconds(self) -> float:
        return self._clock() - self._start

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Mark the time in which the run only waits for builds."""
        since = self._clock()
        try:
            yield
        finally:
            if not self._waiting_counts:
                self._start += self._clock() - since

    @property
    def left_s(self) -> float:
        """Seconds until the end; infinite without a limit."""
        limit = self.budget.seconds
        return float("inf") if limit is None else max(0.0, limit - self.seconds)

    @property
    def exploring_left_s(self) -> float:
        """Seconds in which new candidates are still tried."""
        limit = self.budget.seconds
        return float("inf") if limit is None else _EXPLORE_SHARE * limit - self.seconds

    def no_more_compiles(self) -> str:
        """Return which limit forbids another compile; "" if none does."""
        limit = self.budget.compiles
        if limit is not None and self.compiles >= limit:
            return f"the budget of {limit} compiles was spent"
        return self._no_more_time()

    def no_more_measurements(self) -> str:
        """Return which limit forbids trying another candidate; "" if none does."""
        limit = self.budget.measurements
        if limit is not None and self.measurements >= limit:
            return f"the budget of {limit} measurements was spent"
        return self._no_more_time()

    def no_time_for(self, seconds: float, what: str) -> str:
        """Return why ``what`` ("another candidate takes"), which needs so many seconds, cannot
        start; "" if it fits into the time for trying."""
        left_s = self.exploring_left_s  # read once: the clock advances
        if left_s <= 0:
            return f"the exploration time was spent ({self._explore_share_text()})"
        if seconds <= left_s:
            return ""
        was_left = f"more than the remaining exploration time ({self._explore_share_text()})"
        return f"{what} about {_format_duration(seconds)}, {was_left}"

    def _no_more_time(self) -> str:
        return self.no_time_for(0.0, "")

    def _explore_share_text(self) -> str:
        limit = self.budget.seconds or 0.0
        share = _format_seconds(_EXPLORE_SHARE * limit)
        return f"{share} of {_format_seconds(limit)} s; the rest is for the final rounds"


def _format_seconds(seconds: float) -> str:
    return f"{round(seconds, 1 if seconds >= 10 else 3):g}"


def _format_duration(seconds: float) -> str:
    """Format a duration to two digits: ``46 ms``, ``1.3 s``, ``40 s``; never ``0.0 s``."""
    if seconds >= 10:
        return f"{seconds:.0f} s"
    if seconds >= 0.9995:
        return f"{seconds:.1f} s"
    return f"{seconds * 1e3:.0f} ms" if seconds >= 0.0095 else f"{seconds * 1e3:.2g} ms"
