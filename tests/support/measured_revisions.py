"""Points of revisions, as CI sends them: every series at a revision, with samples."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from codegen_app.tracking.models import Source
from codegen_app.tracking.services import point_storage
from scheduler.results.points.model import Point, RevisionKey, SeriesKey

START = datetime(2026, 11, 1, tzinfo=UTC)
FACTS = {
    "toolchain_version": "13.0",
    "driver": "580.95",
    "runtime": "CUDA 13.0",
    "flags": "-O3",
    "config": {"BLOCK_M": 64},
    "attributes": {"uuid": "GPU-1"},
}


def revision(name: str, day: int | None = 0, branch: str = "main", repository: str = "") -> Any:
    """A revision made on a day after ``START``; None: nobody knows when."""
    at = None if day is None else START + timedelta(days=day)
    return RevisionKey(name, at, branch, repository)


def point(
    problem: str,
    level: float,
    of: RevisionKey,
    *,
    samples: int = 20,
    hours: int = 0,
    facts: Mapping[str, Any] = FACTS,
    code: str = "",
    better: str = "lower",
    **key: Any,
) -> Point:
    """A point of a problem whose samples vary by 0.2%; the same for the same arguments. The code is
    another at each revision, where nothing else is said."""
    given = {"target": "sm_90", "device": "NVIDIA H200", "toolchain": "nvcc", "sizes": {"M": 64}}
    named = SeriesKey(**({"problem": problem, "metric": "time", "unit": "ns", **given} | key))
    draws = np.random.default_rng([hours, *f"{problem}{of.name}".encode()]).normal(0, 0.002, 20)
    made = code or f"{of.name} {problem}".ljust(64, "0")
    values = level * np.exp(draws - np.median(draws))
    low, high = (float(np.quantile(values, part)) for part in (0.3, 0.7))
    return Point(
        named,
        level,
        (of.at or START) + timedelta(hours=hours),
        of,
        low=low,
        high=high,
        n=samples if samples else 1,
        samples=tuple(map(float, values[:samples])),
        better=better,
        conditions={**facts, "code_digest": made, "source_digest": made},
    )


def store(*points: Point, source: Source = Source.API) -> None:
    point_storage.store(points, source)


def each_status() -> tuple[str, str]:
    """Two revisions with series of every status; their names."""
    old, new = revision("a" * 40, 0), revision("b" * 40, 1)
    store(
        point("gemm slower", 1000, old),
        point("gemm faster", 1000, old),
        point("gemm same", 1000, old),
        point("softmax few", 1000, old, samples=3),
        point("softmax elsewhere", 1000, old),
        point("softmax gone", 1000, old),
        point("copy", 4000, old, better="higher", metric="bandwidth", unit="GB/s"),
    )
    other = {**FACTS, "driver": "580.159"}
    store(
        point("gemm slower", 1200, new),
        point("gemm faster", 900, new),
        point("gemm same", 1001, new),
        point("softmax few", 1000, new),
        point("softmax elsewhere", 1000, new, facts=other),
        point("softmax new", 1000, new),
        point("copy", 3000, new, better="higher", metric="bandwidth", unit="GB/s"),
    )
    return old.name, new.name
