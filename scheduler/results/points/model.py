"""What a point of a series is: a figure of a problem at a revision, and what it was measured under.

The JSON of it is described by ``schema.json`` beside this file (``"kind": "kiln points"``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

SCHEMA = 1
KIND = "kiln points"
MOST_POINTS = 10_000
MOST_SAMPLES = 1_000
MOST_N = 2**31 - 1  # measurements of a point

#: What conditions may say beside the series: text, but for those that are JSON objects.
FACTS = {
    "toolchain_version": str,
    "flags": str,
    "driver": str,
    "runtime": str,
    "host": str,
    "source": str,  # an address of the source, for people
    "source_digest": str,
    "code_digest": str,
    "kernel": str,
    "config": dict,
    "resources": dict,
    "clocks": dict,
    "attributes": dict,
}


@dataclass(frozen=True)
class SeriesKey:
    """What makes two points one series. ``toolchain`` is the compiler's name without its version;
    ``own`` the digest of the problem where it is Kiln's own."""

    problem: str
    sizes: Mapping[str, int]
    target: str
    device: str
    toolchain: str
    metric: str
    unit: str
    own: str = ""

    @property
    def digest(self) -> str:
        """The sha256 that the series is known by. Kiln's own problem counts by its digest, however
        it is titled; a name that somebody sends is never one of those."""
        of = {name: getattr(self, name) for name in _KEY_FIELDS}
        return digest_of(of | {"problem": "" if self.own else self.problem})


_KEY_FIELDS = tuple(one.name for one in fields(SeriesKey))


@dataclass(frozen=True)
class RevisionKey:
    """A state of the source, by whatever name: a commit, a version. ``at`` is when it was made,
    None where that is not known."""

    name: str
    at: datetime | None = None
    branch: str = ""
    repository: str = ""


@dataclass(frozen=True)
class Point:
    """One figure in the series' unit. ``low`` and ``high`` bound it, None where that is not known;
    it is of ``n`` measurements, of which ``samples`` are here. ``better`` is "lower" or "higher".
    """

    series: SeriesKey
    value: float
    measured_at: datetime
    revision: RevisionKey
    low: float | None = None
    high: float | None = None
    n: int = 1
    samples: tuple[float, ...] = ()
    better: str = "lower"
    conditions: Mapping[str, Any] = field(default_factory=dict)

    @property
    def at(self) -> datetime:
        """Its place in the history."""
        return self.revision.at or self.measured_at


@dataclass(frozen=True)
class SkippedPart:
    """A part of a tool's file that has no figure, and why."""

    where: str
    reason: str


@dataclass(frozen=True)
class Points:
    """What a file holds."""

    points: tuple[Point, ...]
    left_out: tuple[SkippedPart, ...] = ()


@dataclass(frozen=True)
class ImportContext:
    """What is said beside a tool's file, for what the file does not say itself: where something was
    measured, of which revision, and when (``now``: where nothing says it)."""

    now: datetime
    device: str = ""
    target: str = ""
    toolchain: str = ""
    revision: str = ""
    revision_at: datetime | None = None
    branch: str = ""
    repository: str = ""
    measured_at: datetime | None = None


# Plain data hold themselves nowhere; looking for that is a quarter of writing them.
_ENCODE = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False).encode


def digest_of(content: Any) -> str:
    """The sha256 of plain data."""
    return hashlib.sha256(_ENCODE(content).encode()).hexdigest()


def better_direction(unit: str) -> str:
    """Which way is an improvement, where nobody says: more of what is per second, less of all
    else."""
    return "higher" if unit.endswith("/s") else "lower"
