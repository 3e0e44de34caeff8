"""What was measured of a shape, as a table and as JSON. No torch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.benchmarks.cycles.defaults import WITHIN
from tests.benchmarks.gpu.results import Outcome, Spread
from tests.benchmarks.gpu.table import aligned

UNMEASURED = "HIP"  # the language whose default serves where no other is allowed
_LANGUAGES = (UNMEASURED, "CuteDSL")


@dataclass(frozen=True)
class Tried:
    """A candidate of a language; ``default``: the one that is chosen in it without measurement."""

    language: str
    title: str
    default: bool
    outcome: Outcome

    @property
    def time_us(self) -> float:
        """The median; infinite where it was not timed."""
        return math.inf if self.outcome.time is None else self.outcome.time.median

    @property
    def wrong(self) -> bool:
        """Whether there is a result, and it is not right."""
        return bool(self.outcome.wrong) and not math.isnan(self.outcome.error)


@dataclass(frozen=True)
class Row:
    """A shape, ``of`` a model. ``bound`` is the error that every candidate may have; ``readings``
    are of the GPU, over its rounds; ``error`` says why nothing was measured. ``language`` is that
    of the default where any is allowed, "" where the faster of both counts."""

    name: str
    of: str
    bound: float = 0.0
    tried: tuple[Tried, ...] = ()
    readings: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    error: str = ""
    language: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Which shape it is."""
        return self.name, self.of

    @property
    def best(self) -> Tried | None:
        """The fastest of all; None where nothing was timed."""
        timed = [one for one in self.tried if one.outcome.time is not None]
        return min(timed, key=lambda one: one.time_us, default=None)

    def default_us(self, *languages: str) -> float:
        """Of the faster of these languages' defaults; where none is named of the row's own."""
        among = languages or ((self.language,) if self.language else _LANGUAGES)
        times = (one.time_us for one in self.tried if one.default and one.language in among)
        return min(times, default=math.inf)

    def ratio(self, *languages: str) -> float:
        """That time over the best candidate's; infinite where either was not timed."""
        return math.inf if self.best is None else self.default_us(*languages) / self.best.time_us

    @property
    def failed(self) -> bool:
        """Whether a candidate is wrong, or there is no default."""
        return any(one.wrong for one in self.tried) or math.isinf(self.default_us())


def row_of(data: Mapping[str, Any]) -> Row:
    """A row from the JSON that ``dataclasses.asdict`` gives."""
    return Row(**{**data, "tried": tuple(_tried(one) for one in data["tried"])})


def _tried(data: Mapping[str, Any]) -> Tried:
    said = data["outcome"]
    time = Spread(**said["time"]) if said["time"] else None
    return Tried(**{**data, "outcome": Outcome(**{**said, "time": time})})


def table(rows: Sequence[Row]) -> str:
    """A line for each shape; below it what share of defaults is within a tenth, and what could not
    be timed."""
    heads = ["shape", *(f"{language} default µs" for language in _LANGUAGES), "best µs"]
    heads += ["default / best", f"{UNMEASURED} default / best", "tried", "best candidate"]
    lines = [[f"{row.name}, {row.of}", *_cells(row)] for row in rows]
    return "\n".join((*aligned([heads, *lines]), "", *_notes(rows)))


def _cells(row: Row) -> Iterator[str]:
    best = row.best
    for time in (*map(row.default_us, _LANGUAGES), math.inf if best is None else best.time_us):
        yield "" if math.isinf(time) else f"{time:.1f}"
    for ratio in (row.ratio(), row.ratio(UNMEASURED)):
        yield "none" if math.isinf(ratio) else f"{ratio:.2f}"
    yield str(sum(one.outcome.time is not None for one in row.tried))
    yield "" if best is None else said(best)


def said(one: Tried) -> str:
    """A candidate in words."""
    return f"the {one.language} default" if one.default else f"{one.language} {one.title}"


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    good = sum(row.ratio() <= WITHIN for row in rows)
    alone = sum(row.ratio(UNMEASURED) <= WITHIN for row in rows)
    yield f"- the default in any language is within a tenth of the best: {good} of {len(rows)}"
    yield f"- in {UNMEASURED} alone: {alone} of {len(rows)}"
    for title, key in (("SM", "sm_clock_mhz"), ("memory", "memory_clock_mhz")):
        seen = [row.readings[key] for row in rows if key in row.readings]
        if seen:
            least, most = min(one["min"] for one in seen), max(one["max"] for one in seen)
            yield f"- {title} clock while measuring: {least:.0f} to {most:.0f} MHz"
    for row in rows:
        if row.error:
            yield f"- {row.name}, {row.of}: {row.error}"
        for one in row.tried:
            if one.outcome.wrong:
                yield f"- {row.name}, {row.of}, {said(one)}: {one.outcome.wrong}"
