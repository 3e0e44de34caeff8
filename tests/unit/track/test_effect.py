"""What a ratio says: shown, not shown, or of too few values to say either."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from scheduler.track.effect import Effect, effect_of, format_change


@dataclass(frozen=True)
class Moved:
    low: float | None
    high: float | None
    worse: bool = True
    ratio: float = 1.12
    n_before: int = 60
    n_after: int = 12


@pytest.mark.parametrize(
    ("moved", "effect"),
    [
        (Moved(1.098, 1.142), Effect.WORSE),
        (Moved(0.8, 0.9, worse=False), Effect.BETTER),
        (Moved(0.8, 0.9), Effect.WORSE),
        (Moved(0.98, 1.2), Effect.SAME),
        (Moved(1.0, 1.2), Effect.SAME),
        (Moved(None, None), Effect.UNKNOWN),
        (Moved(1.05, None), Effect.UNKNOWN),
    ],
)
def test_a_ratio_says_what_its_interval_does(moved: Moved, effect: Effect) -> None:
    assert effect_of(moved) is effect
    assert effect.is_shown is (effect in ("worse", "better"))


def test_a_ratio_is_written_with_its_interval_and_n_or_that_there_is_none() -> None:
    assert (
        format_change(Moved(1.098, 1.142))
        == "\N{MULTIPLICATION SIGN}1.120 (95%: 1.098 \N{EN DASH} 1.142; n 60, 12)"
    )
    assert (
        format_change(Moved(None, None))
        == "\N{MULTIPLICATION SIGN}1.120 (insufficient data; n 60, 12)"
    )
