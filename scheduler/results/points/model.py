"""A point of a series: a figure of a problem at a revision, and the conditions of the measurement.

``schema.json`` in this folder describes its JSON (``"kind": "kiln points"``).
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
MAX_POINTS = 10_000
MAX_SAMPLES = 1_000
MAX_MEASUREMENTS = 2**31 - 1  # measurements of a point

#: Further conditions of a point: text, except for those that are JSON objects.
FACTS = {
    "toolchain_version": str,
    "flags": str,
    "driver": str,
    "runtime": str,
    "host": str,
    "source": str,  # URL of the source, for readers
    "path": str,  # of the source or its benchmark, from the root of the repository
    "source_digest": str,
    "code_digest": str,
    "kernel": str,
    "config": dict,
    "resources": dict,
    "clocks": dict,
    "readings": dict,  # power_w, temperature_c, ecc_corrected, ecc_uncorrected
    "attributes": dict,
}


@dataclass(frozen=True)
class SeriesKey:
    """What makes two points one series. ``toolchain`` is the compiler's name without its version;
    ``own`` the hash of the problem if it is Kiln's own."""

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
        """The sha256 that identifies the series. Kiln's own problem counts by its hash, whatever
        its title; a name from outside never equals one."""
        identity = {name: getattr(self, name) for name in _KEY_FIELDS}
        return digest_of(identity | {"problem": "" if self.own else self.problem})


_KEY_FIELDS = tuple(key_field.name for key_field in fields(SeriesKey))


@dataclass(frozen=True)
class RevisionKey:
    """A state of the source, by any name: a commit, a version. ``at`` is when it was made, None if
    unknown.

    ``merge_base`` is the revision of the trunk from which the branch forked, and ``merge_base_at``
    when that was made; ``pull_request`` is its number or URL, ``default_branch`` the name of the
    repository's trunk; ``subject`` and ``author`` are those of the commit. Empty if unknown.
    """

    name: str
    at: datetime | None = None
    branch: str = ""
    repository: str = ""
    merge_base: str = ""
    pull_request: str = ""
    default_branch: str = ""
    subject: str = ""
    author: str = ""
    merge_base_at: datetime | None = None


#: Texts of a revision besides its name, and the maximum number of characters.
REVISION_TEXTS = {
    "branch": 200,
    "repository": 300,
    "merge_base": 100,
    "pull_request": 300,
    "default_branch": 200,
    "subject": 1_000,
    "author": 200,
}
#: Of these, the texts of a single commit.
COMMIT_TEXTS = ("branch", "merge_base", "pull_request", "subject", "author")


@dataclass(frozen=True)
class Point:
    """One figure in the series' unit. ``low`` and ``high`` bound it, None if unknown; it summarizes
    ``n`` measurements, ``samples`` of which are included. ``better`` is "lower" or "higher"."""

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
        """Its position in the history."""
        return self.revision.at or self.measured_at


@dataclass(frozen=True)
class SkippedPart:
    """A part of a tool's file without a figure, and why."""

    where: str
    reason: str


@dataclass(frozen=True)
class Points:
    """The content of a file."""

    points: tuple[Point, ...]
    left_out: tuple[SkippedPart, ...] = ()


@dataclass(frozen=True)
class ImportContext:
    """Import options for what a tool's file does not say: the device, the revision, and when it was
    measured (``now`` if nothing says it)."""

    now: datetime
    device: str = ""
    target: str = ""
    toolchain: str = ""
    revision: str = ""
    revision_at: datetime | None = None
    branch: str = ""
    repository: str = ""
    measured_at: datetime | None = None
    merge_base: str = ""
    pull_request: str = ""
    default_branch: str = ""
    subject: str = ""
    author: str = ""
    merge_base_at: datetime | None = None

    @property
    def revision_key(self) -> RevisionKey:
        """The revision that the options describe."""
        return RevisionKey(
            name=self.revision,
            at=self.revision_at,
            merge_base_at=self.merge_base_at,
            **{name: getattr(self, name) for name in REVISION_TEXTS},
        )


# Plain data has no cycles; checking for them is a quarter of the time.
_ENCODE = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False).encode


def digest_of(content: Any) -> str:
    """Return the sha256 of plain data."""
    return hashlib.sha256(_ENCODE(content).encode()).hexdigest()


def better_direction(unit: str) -> str:
    """Return the better direction of a unit by default: higher for rates per second, lower for all
    else."""
    return "higher" if unit.endswith("/s") else "lower"
