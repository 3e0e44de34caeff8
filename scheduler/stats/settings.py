"""Parameters of change detection, all in one place.

``python -m tests.benchmarks.changes`` compares the defaults with other detectors, and
docs/adr/0019-change-points.md explains them. Changing one changes the history of every series, so
they are frozen.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Distances are in units of the noise, on logarithms of the values (a change is a ratio)."""

    before: int = 90
    """The most values before a possible change that are examined."""

    sizes: tuple[int, ...] = (4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 30)
    """The numbers of values since a possible change that are tested; the last is the largest."""

    min_before: int = 8
    """The fewest values that form a level; with fewer, data are insufficient."""

    min_after_change: int = 4
    """The fewest values that form a level after a change, with the noise of the levels before: a
    commit that the next one reverts has only its own runs."""

    settled: int = 30
    """A level of fewer values may not have shown all its noise yet (a second mode, a spike)."""

    young: float = 1.0
    """How much the thresholds grow for a level of very few values; a settled level adds
    nothing."""

    many: int = 12
    """If a short level precedes, values after it beyond this number also count for the noise."""

    cut: float = 3.5
    """Distances from the median are clipped here (Huber), so that a spike weighs little."""

    thresholds: tuple[tuple[int, float], ...] = (
        *((4, 4.0), (5, 3.9), (6, 3.8)),
        *((8, 3.75), (10, 3.6), (16, 3.5)),
    )
    """Standard errors required, from so many values since the change on."""

    alike_neighbours: float = 0.6
    """How much the thresholds grow if neighbours are alike (autocorrelation of a third or more):
    how alike they are is itself uncertain, and a mode that lasts looks like a level."""

    outlasts: int = 20
    """As many values since a possible change outlast the modes meant by ``alike_neighbours``: with
    so many, the thresholds no longer grow."""

    shared_by_runs: float = 0.25
    """The assumed part of the variance that runs of one revision share, at least: they are measured
    together."""

    recent: int = 16
    """The number of last differences that show whether the noise has grown."""

    grown: float = 0.8
    """The part of the noise that these differences show that is believed: of so few, it varies by
    a fifth."""

    min_ranked: int = 10
    """With fewer values ranks decide nothing: even if all exceed all before, that is not enough."""

    runs: tuple[tuple[int, float], ...] = ((4, 2.8), (5, 2.4), (6, 2.2))
    """How far all values must lie off on one side to be a change, from so many values on."""

    agreement: tuple[tuple[int, float], ...] = ((4, 3.5), (5, 4.5))
    """How far apart the values of a level may lie, from so many values on: spikes lie further."""

    chance: float = 1e-5
    """The largest probability of such values, estimated from the values before that lie as far
    off."""

    together: float = 0.4
    """The assumed probability that another value as far off follows one, until it has been
    observed: spikes come in bursts, and a mode lasts for some values."""

    clear: float = 8.0
    """How far all values must lie off, near each other, to be a change with any noise: a mode
    never seen is not expected that far off."""

    alike: float = 0.2
    """How far apart values that are clearly off may lie, as a fraction of how far off they are."""

    at_place: float = 0.6
    """How far the test must be passed where the change is said to begin, as a fraction of the
    requirement where it was found."""

    min_dwell: int = 2
    """The fewest values that count as a visit to a level, not as a spike."""

    waits: tuple[tuple[int, int], ...] = ((1, 12), (2, 24))
    """A level that the series visited before, once or more often, must last longer than the longest
    of these visits; this many values are always enough."""

    slope_errors: float = 2.5
    """A drift of fewer standard errors is ignored."""

    beyond_line: float = 6.0
    """How much better a step must fit the values than a line does (twice the logarithm of the
    likelihoods' ratio)."""

    min_drift: int = 16
    """With fewer values no drift is estimated."""

    least_effect: float = 0.005
    """Smaller changes are ignored; a fraction of the level before."""

    min_noise: float = 0.001
    """The least noise assumed; a fraction of the level."""

    @property
    def after(self) -> int:
        """The number of values within which a change is found, or never."""
        return self.sizes[-1]
