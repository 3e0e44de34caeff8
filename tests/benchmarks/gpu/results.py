"""What was found of each problem: how far each result was from the reference, and times. No torch.

A contender is a way to compute a problem: ``kiln`` by its default configurations in HIP C++,
``cutedsl`` by those in CuteDSL where that language serves, ``mixed`` by the faster of both for each
of several kernels, ``tuned`` by those that Kiln's tuner chose here, and torch's ``eager`` and
``compile``. ``copy`` moves as many bytes and computes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from scheduler.stats.intervals import median_interval

KILN, CUTEDSL, MIXED, TUNED = "kiln", "cutedsl", "mixed", "tuned"
EAGER, COMPILE, COPY = "eager", "compile", "copy"
OURS = (KILN, CUTEDSL, MIXED, TUNED)
CONTENDERS = (*OURS, EAGER, COMPILE, COPY)


@dataclass(frozen=True)
class Spread:
    """Microseconds of ``n`` calls: their median with its 95% interval, and their quartiles."""

    median: float
    low: float
    high: float
    first_quartile: float
    third_quartile: float
    n: int


def spread(samples_us: Sequence[float]) -> Spread:
    """Of one contender's samples. Raises ``ValueError`` without samples."""
    found = median_interval(samples_us)
    first, third = np.quantile(np.asarray(samples_us, dtype=np.float64), [0.25, 0.75])
    return Spread(found.median, found.low, found.high, float(first), float(third), found.n)


@dataclass(frozen=True)
class Outcome:
    """One contender at one problem. ``time`` is None where ``wrong`` says why it was not timed;
    ``error`` is NaN where it gave no result, ``made_s`` what making it took."""

    error: float = math.nan
    wrong: str = ""
    time: Spread | None = None
    made_s: float = 0.0


@dataclass(frozen=True)
class Bar:
    """Our time over a ``peer``'s is ``at_most`` so much: the fastest of ours, or of those named."""

    peer: str
    at_most: float
    ours: tuple[str, ...] = ()


class Verdict(StrEnum):
    """What became of a bar."""

    REACHED = "reached"
    TIED = "within noise"
    """Above the bar by less than the medians' 95% intervals leave open."""
    MISSED = "missed"
    NOT_JUDGED = "not judged"
    """One of both was not timed."""


@dataclass(frozen=True)
class Row:
    """A problem. ``flops`` and ``moved_bytes`` are what it needs at least (0: not said); ``bound``
    is the error that every contender may have; ``readings`` are of the GPU, over its rounds."""

    name: str
    flops: float
    moved_bytes: float
    bound: float
    outcomes: Mapping[str, Outcome]
    readings: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    bars: tuple[Bar, ...] = ()

    def median(self, contender: str) -> float | None:
        """Microseconds; None for one that was not timed."""
        found = self.outcomes.get(contender)
        return None if found is None or found.time is None else found.time.median

    def fastest(self, among: Sequence[str] = OURS) -> str | None:
        """Of those contenders that were timed."""
        timed = [one for one in among if self.median(one) is not None]
        return min(timed, key=lambda one: self.median(one) or math.inf, default=None)

    def ratio(self, peer: str, among: Sequence[str] = ()) -> float | None:
        """The fastest of our times over a peer's: below 1 Kiln is faster."""
        ours = self.fastest(among or OURS)
        times = None if ours is None else self.median(ours), self.median(peer)
        return None if times[0] is None or times[1] is None else times[0] / times[1]

    def verdict(self, bar: Bar) -> Verdict:
        """Whether the bar is reached."""
        ratio, ours = self.ratio(bar.peer, bar.ours), self.fastest(bar.ours or OURS)
        if ratio is None or ours is None:
            return Verdict.NOT_JUDGED
        if ratio <= bar.at_most:
            return Verdict.REACHED
        own, peer = self.outcomes[ours].time, self.outcomes[bar.peer].time
        assert own is not None
        assert peer is not None
        return Verdict.TIED if own.low <= bar.at_most * peer.high else Verdict.MISSED

    def copys_ratio(self, bar: Bar) -> float | None:
        """What a copy of as many bytes takes of the peer's time, where that is more than the bar
        allows: then memory does not give what it asks for. Else None."""
        copy, peer = self.median(COPY), self.median(bar.peer)
        if copy is None or peer is None or copy / peer <= bar.at_most:
            return None
        return copy / peer

    @property
    def missed(self) -> bool:
        """Whether a bar is not reached."""
        return any(self.verdict(bar) is Verdict.MISSED for bar in self.bars)

    @property
    def failed(self) -> bool:
        """Whether a kernel of ours was wrong, or there is none."""
        found = {name: one for name, one in self.outcomes.items() if name in OURS and one.wrong}
        return KILN in found or any(not math.isnan(one.error) for one in found.values())

    @staticmethod
    def lost(name: str, reason: str, bars: tuple[Bar, ...]) -> Row:
        """Of a problem that ended its process."""
        return Row(name, 0.0, 0.0, 0.0, {KILN: Outcome(wrong=reason)}, {}, bars)


def row_of(data: Mapping[str, Any]) -> Row:
    """A row from the JSON that ``dataclasses.asdict`` gives."""
    outcomes = {
        name: Outcome(**{**one, "time": Spread(**one["time"]) if one["time"] else None})
        for name, one in data["outcomes"].items()
    }
    bars = tuple(Bar(one["peer"], one["at_most"], tuple(one["ours"])) for one in data["bars"])
    return Row(**{**data, "outcomes": outcomes, "bars": bars})


def judged(error: float, bound: float) -> str:
    """Why a result of that error is wrong; "" where it is right."""
    # NaN is within no bound.
    return "" if error <= bound else f"error {error:.2e}, at most {bound:.2e} is right"
