"""What decides whether a series of measurements has changed: every parameter, in one place.

The defaults are those that ``python -m tests.benchmarks.changes`` holds beside other detectors
and docs/adr/0019-change-points.md explains; a change of one is a change of every series' history,
so they are frozen.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Distances are in units of the noise, on logarithms of the values (a change is a ratio)."""

    before: int = 90
    """Values before a possible change that are looked at, at most."""

    sizes: tuple[int, ...] = (4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 30)
    """How many values since a possible change are tried; the last is the most there may be."""

    least_before: int = 8
    """Fewer values than that are no level: data are insufficient."""

    least_after_change: int = 4
    """But after a change so many are one, by the noise of the levels before: a commit that is
    backed out by the next one has only its own runs."""

    settled: int = 30
    """A level of fewer values may not have shown all its noise yet (a second mode, a spike)."""

    young: float = 1.0
    """How much more is asked for beside a level of hardly any values; nothing more of a settled."""

    many: int = 12
    """More values than that after a level of few say what the noise is like as well."""

    cut: float = 3.5
    """Distances from the median are cut off here (Huber), so that a spike weighs little."""

    thresholds: tuple[tuple[int, float], ...] = (
        *((4, 5.2), (5, 5.0), (6, 4.8)),
        *((8, 4.6), (10, 4.4), (16, 4.2)),
    )
    """From that many values since the change on, how many standard errors are enough."""

    least_ranked: int = 10
    """Of fewer values the ranks say nothing: all of them beyond all before are not yet enough."""

    runs: tuple[tuple[int, float], ...] = ((4, 2.8), (5, 2.4), (6, 2.2))
    """From that many values on, how far all of them must lie off on one side to be a change."""

    agreement: tuple[tuple[int, float], ...] = ((4, 3.5), (5, 4.5))
    """From that many values on, how far apart values of a level lie: spikes lie further."""

    chance: float = 1e-5
    """How likely such values may be by the share of the values before that lie as far off."""

    together: float = 0.4
    """How often a value that lies so far off is taken to be followed by another, until it has
    been seen: spikes come in bursts, and a mode is kept for some values."""

    clear: float = 8.0
    """How far all values must lie off, near each other, to be a change whatever the noise is
    like: a mode that was never seen is not reckoned with that far off."""

    alike: float = 0.2
    """How far values that are clearly off may lie apart, as a part of how far off they are."""

    at_place: float = 0.6
    """How far the test must be passed where the change is said to begin, as a part of what is
    needed where it was found."""

    min_dwell: int = 2
    """So many values at least are a visit to a level, and not a spike."""

    waits: tuple[tuple[int, int], ...] = ((1, 12), (2, 24))
    """A level that the series was on before and left, once or more often, must last longer than
    the longest of these visits, but as many values are always enough."""

    slope_errors: float = 2.5
    """A drift of fewer standard errors than that is none."""

    beyond_line: float = 6.0
    """By how much a step must describe the values better than a line does (twice the logarithm of
    the likelihoods' ratio)."""

    least_drift: int = 16
    """Fewer values than that show no drift."""

    least_effect: float = 0.005
    """Changes of less than that are of no interest: as a part of the level before."""

    least_noise: float = 0.001
    """Noise is never taken as less: as a part of the level."""

    @property
    def after(self) -> int:
        """A change is found within as many values, or not."""
        return self.sizes[-1]
