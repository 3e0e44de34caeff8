"""What a change of level says: one rule, in one wording, for pages, pictures and messages."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from scheduler.track.units import format_ratio


class Effect(StrEnum):
    """Which way a series moved; or that its ratio does not say so, and why."""

    WORSE = "worse"
    BETTER = "better"
    SAME = "no difference is shown"
    UNKNOWN = "insufficient data"

    @property
    def is_shown(self) -> bool:
        """Whether the series moved for all that is known."""
        return self in (Effect.WORSE, Effect.BETTER)


class Levels(Protocol):
    """Two levels, of so many values each: ``ratio`` is after by before, ``low`` and ``high`` its
    95% interval, None where too few values say it."""

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
    """Two levels of a series; ``worse`` where the step is in the wrong direction."""

    @property
    def worse(self) -> bool: ...


def effect_of(step: Step) -> Effect:
    """A ratio without an interval says nothing, and one whose interval holds 1 shows nothing."""
    if step.low is None or step.high is None:
        return Effect.UNKNOWN
    if step.low <= 1 <= step.high:
        return Effect.SAME
    return Effect.WORSE if step.worse else Effect.BETTER


def format_interval(levels: Levels) -> str:
    """The ratio's interval as people read it, or that there is none."""
    if levels.low is None or levels.high is None:
        return Effect.UNKNOWN.value
    return f"{levels.low:.3f} \N{EN DASH} {levels.high:.3f}"


def format_counts(levels: Levels) -> str:
    """How many values before and after: ``12, 5``."""
    return f"{levels.n_before}, {levels.n_after}"


def format_change(levels: Levels) -> str:
    """The ratio with its interval and n in one line, or with “insufficient data” in that place."""
    is_known = levels.low is not None and levels.high is not None
    interval = f"95%: {format_interval(levels)}" if is_known else Effect.UNKNOWN.value
    return f"{format_ratio(levels.ratio)} ({interval}; n {format_counts(levels)})"
