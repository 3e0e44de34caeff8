"""The verdict on a change of level: one rule and one wording for pages, pictures and messages."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from scheduler.track.units import format_ratio


class Effect(StrEnum):
    """The direction in which a series moved; or that its ratio does not show one, and why."""

    WORSE = "worse"
    BETTER = "better"
    SAME = "no difference is shown"
    UNKNOWN = "insufficient data"

    @property
    def is_shown(self) -> bool:
        """Whether the series is known to have moved."""
        return self in (Effect.WORSE, Effect.BETTER)


class Levels(Protocol):
    """Two levels and their numbers of values: ``ratio`` is after by before, ``low`` and ``high``
    its 95% interval, None if there are too few values."""

    @property
    def ratio(self) -> float: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...
    @property
    def n_before(self) -> int: ...
    @property
    def n_after(self) -> int: ...


class Step(Levels, Protocol):
    """Two levels of a series; ``worse`` if the step is in the wrong direction."""

    @property
    def worse(self) -> bool: ...


def effect_of(step: Step) -> Effect:
    """Return the effect. A ratio without an interval is inconclusive; one whose interval contains 1
    shows no difference."""
    if step.low is None or step.high is None:
        return Effect.UNKNOWN
    if step.low <= 1 <= step.high:
        return Effect.SAME
    return Effect.WORSE if step.worse else Effect.BETTER


def format_interval(levels: Levels) -> str:
    """Format the ratio's interval for display, or say that there is none."""
    if levels.low is None or levels.high is None:
        return Effect.UNKNOWN.value
    return f"{levels.low:.3f} \N{EN DASH} {levels.high:.3f}"


def format_counts(levels: Levels) -> str:
    """Format the numbers of values before and after: ``12, 5``."""
    return f"{levels.n_before}, {levels.n_after}"


def format_change(levels: Levels) -> str:
    """Format the ratio with its interval and n on one line; without an interval, “insufficient
    data”."""
    is_known = levels.low is not None and levels.high is not None
    interval = f"95%: {format_interval(levels)}" if is_known else Effect.UNKNOWN.value
    return f"{format_ratio(levels.ratio)} ({interval}; n {format_counts(levels)})"
