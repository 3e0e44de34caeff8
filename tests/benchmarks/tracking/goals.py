"""What was measured, beside what was asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from tests.benchmarks.printing import say


@dataclass(frozen=True)
class Figure:
    """A figure of ``n`` measurements in ``unit``, and the goal: the most it may be, or the least
    where ``at_least``; None where there is none."""

    name: str
    value: float
    unit: str
    n: int
    goal: float | None = None
    at_least: bool = False
    note: str = ""

    @property
    def is_met(self) -> bool:
        """Whether the goal is met, if there is one."""
        if self.goal is None:
            return True
        return self.value >= self.goal if self.at_least else self.value <= self.goal

    def print(self) -> None:
        """A line of the table."""
        goal = ""
        if self.goal is not None:
            most = "at least" if self.at_least else "at most"
            met = "met" if self.is_met else "MISSED"
            goal = f"goal {most} {self.goal:g} {self.unit}: {met}"
        number = f"{self.value:,.0f}" if self.value >= 100 else f"{self.value:,.3g}"
        say(
            f"{self.name:<46} {number:>9} {self.unit:<9} n = {self.n:<7,} {goal:<36} {self.note}"
            f" (load {os.getloadavg()[0]:.1f})"
        )


def percentile(values: Sequence[float], part: float) -> float:
    """The value that so large a part of all do not exceed."""
    ordered = sorted(values)
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)]
