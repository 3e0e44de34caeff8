"""A generated team: what the tracking of a repository shows, in few series.

A branch of a pull request is 10% slower in one series; three commits improve others towards a
budget; one of two machines becomes slow. Nothing in it was measured: ``LABEL`` begins the names of
its problems, devices, hosts, repository and branch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from scheduler.results.points.model import Point, RevisionKey, SeriesKey
from scheduler.targets import hopper
from scheduler.track.generated_label import LABEL

REPOSITORY = f"{LABEL}: team"
BRANCH, PULL_REQUEST = f"{LABEL}: wider tiles", f"{LABEL}: 17"
DEVICE = f"{LABEL}: NVIDIA H200"
KERNELS, BENCHMARKS = f"{LABEL}: attention kernel", f"{LABEL}: nightly benchmark"

_INTERVAL = timedelta(days=3)
_COMMITS, _NIGHTLY = 60, 30  # commits of the trunk; those that the slow machine measured
_BRANCH_COMMITS = 3
_NOISE = 0.004
_LEVELS_NS = (180e3, 240e3, 290e3, 330e3, 420e3, 510e3)
# The kernels that a commit improves, and its subject, by its number.
_FASTER = {
    20: ((2, 3), "Keep the keys in shared memory"),
    38: ((1, 4), "Load two stages ahead"),
    52: ((2, 3), "Skip masked tiles"),
}
_STEP = 0.92
_BRANCH_FACTOR, _BRANCH_KERNEL = 1.1, 3
_SLOW_FACTOR, _SLOW_COMMITS, _SLOW_SERIES = 1.3, 5, 5
_DRIVER, _COMPILER = "580.95", "13.0"


@dataclass(frozen=True)
class _Host:
    """A machine, and what its sensors say."""

    name: str
    sm_mhz: int = 1980
    power_w: float = 610.0
    temperature_c: float = 58.0


_FIRST, _SECOND = _Host(f"{LABEL} host-1"), _Host(f"{LABEL} host-2")
_HOT = _Host(_SECOND.name, sm_mhz=1410, power_w=430.0, temperature_c=88.0)


def team_points(last: datetime) -> tuple[Point, ...]:
    """Return the points of the team, whose last commit on the trunk is of that time."""
    trunk = [
        RevisionKey(
            f"{LABEL}-team-{number:04d}",
            last - _INTERVAL * (_COMMITS - 1 - number),
            "main",
            REPOSITORY,
            subject=_FASTER[number][1] if number in _FASTER else "",
            author=LABEL,
        )
        for number in range(_COMMITS)
    ]
    return (*_kernels(trunk), *_nightly(trunk[-_NIGHTLY:]))


def _kernels(trunk: Sequence[RevisionKey]) -> Iterator[Point]:
    """Yield the kernels on the trunk, and on the branch of a pull request."""
    base = trunk[-2]
    assert base.at is not None
    branch = [
        RevisionKey(
            f"{LABEL}-branch-{number}",
            base.at + timedelta(hours=number + 1),
            BRANCH,
            REPOSITORY,
            merge_base=base.name,
            merge_base_at=base.at,
            pull_request=PULL_REQUEST,
            subject="Use wider tiles",
            author=LABEL,
        )
        for number in range(_BRANCH_COMMITS)
    ]
    for kernel, first_level in enumerate(_LEVELS_NS):
        name = f"{KERNELS} {kernel}"
        rng = np.random.default_rng([len(trunk), kernel])
        edition = 0
        for number, revision in enumerate(trunk):
            if number in _FASTER and kernel in _FASTER[number][0]:
                edition += 1
            level = first_level * _STEP**edition
            yield _point(name, revision, level, f"edition {edition}", _FIRST, rng)
        factor = _BRANCH_FACTOR if kernel == _BRANCH_KERNEL else 1.0
        code = "wider tiles" if kernel == _BRANCH_KERNEL else f"edition {edition}"
        for revision in branch:
            yield _point(name, revision, level * factor, code, _FIRST, rng)


def _nightly(trunk: Sequence[RevisionKey]) -> Iterator[Point]:
    """Yield benchmarks of the same code on the machine that becomes slow."""
    for number in range(_SLOW_SERIES):
        rng = np.random.default_rng([_NIGHTLY, number])
        for place, revision in enumerate(trunk):
            slow = place >= len(trunk) - _SLOW_COMMITS
            level = _LEVELS_NS[number] / 4 * (_SLOW_FACTOR if slow else 1.0)
            host = _HOT if slow else _SECOND
            yield _point(f"{BENCHMARKS} {number}", revision, level, "benchmark", host, rng)


def _point(
    name: str,
    revision: RevisionKey,
    level: float,
    code: str,
    host: _Host,
    rng: np.random.Generator,
) -> Point:
    samples = level * np.exp(rng.normal(0, _NOISE)) * np.exp(rng.normal(0, _NOISE, 7))
    assert revision.at is not None
    return Point(
        SeriesKey(name, {}, hopper.GPUS[0].processor, DEVICE, "nvcc", "time", "ns"),
        value=round(float(np.median(samples)), 1),
        measured_at=revision.at,
        revision=revision,
        low=round(float(samples.min()), 1),
        high=round(float(samples.max()), 1),
        n=len(samples),
        samples=tuple(round(float(value), 1) for value in samples),
        conditions=_facts(name, code, host),
    )


def _facts(name: str, code: str, host: _Host) -> Mapping[str, Any]:
    return {
        "host": host.name,
        "driver": _DRIVER,
        "toolchain_version": _COMPILER,
        "source_digest": _digest(name, code),
        "code_digest": _digest(name, code, _COMPILER),
        "path": "kernels/attention.cu" if name.startswith(KERNELS) else "benchmarks/nightly.cu",
        "clocks": {"sm": host.sm_mhz},
        "readings": {"power_w": host.power_w, "temperature_c": host.temperature_c},
    }


def _digest(*parts: str) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()
